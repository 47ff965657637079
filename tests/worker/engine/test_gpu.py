"""Finding the GPU, over a simulated driver with two GPUs: the machines that run these tests have none."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from worker.engine.gpu import Absence, Gpu, find_gpu


class NVMLError(Exception):
    pass


DEVICES = {
    "GPU-aaaa-1": SimpleNamespace(name="NVIDIA A10", capability=(8, 6)),
    "GPU-bbbb-2": SimpleNamespace(name="NVIDIA H200", capability=(9, 0)),
}


def by_index(index: int) -> str:
    if not 0 <= index < len(DEVICES):
        raise NVMLError("Invalid Argument")
    return list(DEVICES)[index]


def by_uuid(uuid: str) -> str:
    if uuid not in DEVICES:
        raise NVMLError("Not Found")
    return uuid


def simulated_driver(**changes: Any) -> ModuleType:
    module = ModuleType("pynvml")
    calls: dict[str, Any] = {
        "NVMLError": NVMLError,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.159.04",
        "nvmlDeviceGetCount": lambda: len(DEVICES),
        "nvmlDeviceGetHandleByIndex": by_index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetUUID": lambda device: device,
        "nvmlDeviceGetName": lambda device: DEVICES[device].name,
        "nvmlDeviceGetCudaComputeCapability": lambda device: DEVICES[device].capability,
        "nvmlDeviceGetMemoryInfo": lambda device: SimpleNamespace(free=2 << 30, total=3 << 30),
    }
    for name, value in {**calls, **changes}.items():
        setattr(module, name, value)
    return module


@pytest.mark.parametrize(
    ("visible", "arch"),
    [(None, "sm_86"), ("1,0", "sm_90"), ("GPU-bbbb-2", "sm_90"), ("GPU-bbbb", "sm_90"), ("GPU-aaaa-1,1", "sm_86")],
)
def test_the_first_gpu_that_cuda_may_use_is_described(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, arch: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", simulated_driver())
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpu = find_gpu()
    assert isinstance(gpu, Gpu)
    assert (gpu.arch, gpu.driver, gpu.free_bytes, gpu.total_bytes) == (arch, "580.159.04", 2 << 30, 3 << 30)


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-cccc"])
def test_a_gpu_that_is_hidden_is_absent(monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", simulated_driver())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    absence = find_gpu()
    assert isinstance(absence, Absence)
    assert f"CUDA_VISIBLE_DEVICES={visible!r}" in absence.reason


def test_a_driver_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise NVMLError("Driver Not Loaded")

    monkeypatch.setitem(sys.modules, "pynvml", simulated_driver(nvmlInit=fail))
    absence = find_gpu()
    assert isinstance(absence, Absence)
    assert "Driver Not Loaded" in absence.reason


def test_a_missing_library_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    absence = find_gpu()
    assert isinstance(absence, Absence)
    assert ("nvidia-ml-py" in absence.reason, "atoll[tensorrt]" in absence.cure) == (True, True)
