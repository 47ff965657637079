"""The toolchains: what each can build on this machine, and how it is told what to build for."""

import importlib.util
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import ClassVar, Protocol

from service.errors import InvalidOptions, NoWorker
from service.workers.types import ToolchainOffer
from worker.engine.gpu import Absence, Gpu, find_gpu
from worker.engine.options import AHEAD_OF_TIME, ON_GPU, Option
from worker.engine.trt import MODULES

PORTABLE = "portable"


class Toolchain(Protocol):
    """One way to build engines. Asking for its offer imports no TensorRT.

    `ahead_of_time`: builds for GPUs that are not here, for several in one engine too. `fused_attention_mark`: bytes
    that a serialized engine holds once a fused attention and profile; None where none is known.
    """

    name: ClassVar[str]
    distributions: ClassVar[tuple[str, ...]]
    ahead_of_time: ClassVar[bool]
    options: ClassVar[Mapping[str, Option]]
    fused_attention_mark: ClassVar[bytes | None]

    def offer(self) -> ToolchainOffer | Absence: ...

    def gpu(self) -> Gpu | None:
        """The GPU that engines are built on and for."""
        ...

    def capabilities(self, arch: str) -> tuple[str, ...]:
        """TensorRT's names of what the builder has to be told to build for; empty where its default is right.

        Raises InvalidOptions or NoWorker for what this toolchain cannot build here.
        """
        ...


class TensorRTForRTX:
    """TensorRT for RTX: ahead of time, on any CPU. Always strongly typed."""

    name: ClassVar[str] = "tensorrt-rtx"
    distributions: ClassVar[tuple[str, ...]] = ("tensorrt-rtx-cu13-bindings", "tensorrt-rtx")
    ahead_of_time: ClassVar[bool] = True
    options: ClassVar[Mapping[str, Option]] = AHEAD_OF_TIME
    # From the source of the generated kernel, which the engine stores. Undocumented: a test proves it.
    fused_attention_mark: ClassVar[bytes | None] = b"_gemm_mha_v2_Kernel_traits = "
    archs: ClassVar[tuple[str, ...]] = (PORTABLE, "sm_75", "sm_80", "sm_86", "sm_89", "sm_120", "sm_121")

    def offer(self) -> ToolchainOffer | Absence:
        version = installed_version(self)
        if version is None:
            return Absence(self.name, "it is not installed", "pip install 'atoll[worker]'.")
        return ToolchainOffer(toolchain=self.name, version=version, archs=self.archs, platform=this_platform())

    def gpu(self) -> None:
        return None

    def capabilities(self, arch: str) -> tuple[str, ...]:
        """None stands for portable."""
        if arch == PORTABLE:
            return ()
        parts = arch.split("+")
        if unknown := [part for part in parts if part not in self.archs]:
            raise InvalidOptions(f"{self.name} cannot build for {unknown[0]!r}; it builds for {', '.join(self.archs)}.")
        if PORTABLE in parts:
            raise InvalidOptions(f"{PORTABLE!r} is for several archs already; leave out the others of {arch!r}.")
        return tuple(part.replace("sm_", "SM") for part in parts)


class TensorRTOnGpu:
    """TensorRT: builds on the GPU that the engine is for."""

    name: ClassVar[str] = "tensorrt"
    distributions: ClassVar[tuple[str, ...]] = ("tensorrt", "tensorrt-cu13", "tensorrt-cu12")
    ahead_of_time: ClassVar[bool] = False
    options: ClassVar[Mapping[str, Option]] = ON_GPU
    fused_attention_mark: ClassVar[bytes | None] = None

    def offer(self) -> ToolchainOffer | Absence:
        version = installed_version(self)
        if version is None:
            return Absence(self.name, "it is not installed", "On a GPU machine: pip install 'atoll[tensorrt]'.")
        gpu = find_gpu()
        if isinstance(gpu, Absence):
            return Absence(self.name, gpu.reason, gpu.cure)
        return ToolchainOffer(
            toolchain=self.name,
            version=version,
            archs=(gpu.arch,),
            platform=this_platform(),
            gpu=gpu.name,
            driver=gpu.driver,
        )

    def gpu(self) -> Gpu | None:
        gpu = find_gpu()
        return gpu if isinstance(gpu, Gpu) else None

    def capabilities(self, arch: str) -> tuple[()]:
        """Nothing to say: the target is the GPU at hand, which has to be the right one."""
        gpu = find_gpu()
        if isinstance(gpu, Absence):
            raise NoWorker(f"{self.name} builds on the GPU that it builds for, but {gpu.reason}. {gpu.cure}")
        if arch != gpu.arch:
            raise NoWorker(f"{self.name} builds here for {gpu.arch} ({gpu.name}) only, not for {arch!r}.")
        return ()


TOOLCHAINS: tuple[Toolchain, ...] = (TensorRTOnGpu(), TensorRTForRTX())


def toolchain_named(name: str) -> Toolchain:
    """Raises InvalidOptions that lists the toolchains there are."""
    for toolchain in TOOLCHAINS:
        if toolchain.name == name:
            return toolchain
    known = ", ".join(toolchain.name for toolchain in TOOLCHAINS)
    raise InvalidOptions(f"There is no toolchain {name!r}; there are {known}.", toolchain=name)


def available_toolchains() -> tuple[ToolchainOffer, ...]:
    """What this machine can build, as a worker announces it."""
    return tuple(offer for offer in _offers() if isinstance(offer, ToolchainOffer))


def absent_toolchains() -> tuple[Absence, ...]:
    """What this machine cannot build with, why, and what to install."""
    return tuple(offer for offer in _offers() if isinstance(offer, Absence))


def _offers() -> list[ToolchainOffer | Absence]:
    return [toolchain.offer() for toolchain in TOOLCHAINS]


def installed_version(toolchain: Toolchain) -> str | None:
    """From the metadata of the first distribution that is there with a module to import."""
    if not any(importlib.util.find_spec(module) for module in MODULES[toolchain.name]):
        return None
    for distribution in toolchain.distributions:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def this_platform() -> str:
    """Like `linux-x86_64`: engines load only on the operating system and CPU that they were built for."""
    return f"{sys.platform}-{platform.machine().lower()}"
