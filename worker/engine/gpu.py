"""The GPU that this worker owns, as the driver describes it; no CUDA context is made."""

import importlib
import os
from dataclasses import dataclass
from typing import Any

CURE = "Build for the GPU of another worker, or ahead of time with `tensorrt-rtx`."


@dataclass(frozen=True, slots=True)
class Absence:
    """What is not here, why, and what to do about it."""

    what: str
    reason: str
    cure: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """`arch` is `sm_XX`; memory in bytes, free as of the moment of asking."""

    name: str
    arch: str
    driver: str
    free_bytes: int
    total_bytes: int


def find_gpu() -> Gpu | Absence:
    """The first GPU that CUDA may use here (CUDA_VISIBLE_DEVICES is heeded, as the driver's library does not)."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return Absence(
            "GPU", "nvidia-ml-py is not installed, so no GPU can be asked for", "pip install 'atoll[tensorrt]'"
        )
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Absence("GPU", f"the NVIDIA driver does not answer: {error}", CURE)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    try:
        return _describe(nvml, _first_visible(nvml, visible))
    except nvml.NVMLError as error:
        return Absence("GPU", f"no GPU is visible (CUDA_VISIBLE_DEVICES={visible!r}): {error}", CURE)
    finally:
        nvml.nvmlShutdown()


def _first_visible(nvml: Any, visible: str) -> Any:
    """CUDA takes indices, and UUIDs that may be cut short."""
    first = visible.split(",")[0].strip()
    if first.lstrip("-").isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(first))
    for index in range(nvml.nvmlDeviceGetCount()):
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        if first and str(nvml.nvmlDeviceGetUUID(device)).startswith(first):
            return device
    return nvml.nvmlDeviceGetHandleByUUID(first)


def _describe(nvml: Any, device: Any) -> Gpu:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(device)
    memory = nvml.nvmlDeviceGetMemoryInfo(device)
    return Gpu(
        name=str(nvml.nvmlDeviceGetName(device)),
        arch=f"sm_{major}{minor}",
        driver=str(nvml.nvmlSystemGetDriverVersion()),
        free_bytes=int(memory.free),
        total_bytes=int(memory.total),
    )
