"""The one door to TensorRT: nothing else imports it. Loaded when asked for, as that costs memory and a GPU's context.

The protocols name the parts that atoll uses; both distributions (TensorRT, TensorRT for RTX) have them.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from service.errors import NoWorker

# In the order in which they are tried. The bindings of RTX come with or without the package that renames them.
MODULES = {"tensorrt": ("tensorrt",), "tensorrt-rtx": ("tensorrt_rtx", "tensorrt_rtx_bindings")}


class Tensor(Protocol):
    name: str
    dtype: Any
    shape: Sequence[int]
    is_shape_tensor: bool

    def get_dimension_name(self, index: int) -> str | None: ...


class Layer(Protocol):
    name: str
    type: Any
    num_outputs: int

    def get_output(self, index: int) -> Tensor: ...


class Network(Protocol):
    num_inputs: int
    num_outputs: int
    num_layers: int

    def get_input(self, index: int) -> Tensor: ...
    def get_output(self, index: int) -> Tensor: ...
    def get_layer(self, index: int) -> Layer: ...


class ParserError(Protocol):
    """Points into its parser: used after the parser is gone, it crashes the process."""

    def desc(self) -> str: ...
    def node(self) -> int: ...
    def node_name(self) -> str: ...
    def node_operator(self) -> str: ...


class OnnxParser(Protocol):
    num_errors: int

    def parse_from_file(self, path: str) -> bool: ...
    def get_error(self, index: int) -> ParserError: ...


class OptimizationProfile(Protocol):
    def set_shape(self, name: str, low: Sequence[int], best: Sequence[int], high: Sequence[int]) -> None: ...
    def set_shape_input(self, name: str, low: Sequence[int], best: Sequence[int], high: Sequence[int]) -> None: ...


class BuilderConfig(Protocol):
    builder_optimization_level: int
    num_compute_capabilities: int
    profiling_verbosity: Any
    progress_monitor: Any

    def set_flag(self, flag: Any) -> None: ...
    def get_memory_pool_limit(self, pool: Any) -> int: ...
    def set_memory_pool_limit(self, pool: Any, size: int) -> None: ...
    def set_compute_capability(self, capability: Any, index: int) -> bool: ...
    def add_optimization_profile(self, profile: OptimizationProfile) -> int: ...


class HostMemory(Protocol):
    """The serialized engine, in the builder's own memory; it has the buffer protocol."""

    nbytes: int

    def __buffer__(self, flags: int, /) -> memoryview: ...


class Builder(Protocol):
    def create_network(self, flags: int) -> Network: ...
    def create_builder_config(self) -> BuilderConfig: ...
    def create_optimization_profile(self) -> OptimizationProfile: ...
    def build_serialized_network(self, network: Network, config: BuilderConfig) -> HostMemory | None: ...


class TensorRT(Protocol):
    """The module."""

    __version__: str
    Builder: Callable[[Any], Builder]
    OnnxParser: Callable[[Network, Any], OnnxParser]
    ILogger: Any
    IProgressMonitor: Any
    BuilderFlag: Any
    MemoryPoolType: Any
    NetworkDefinitionCreationFlag: Any
    ProfilingVerbosity: Any
    LayerType: Any
    ComputeCapability: Any


def load(toolchain: str) -> TensorRT:
    """Import the TensorRT of a toolchain. Raises NoWorker, with what each module said, where it does not load."""
    reasons = []
    for name in MODULES[toolchain]:
        try:
            return cast("TensorRT", importlib.import_module(name))
        except (ImportError, OSError) as error:
            reasons.append(f"{name}: {error}")
    raise NoWorker(f"{toolchain} does not load here ({'; '.join(reasons)}). `atoll doctor` says what to install.")


def logger(trt: TensorRT, take: Callable[[str, str], None]) -> Any:
    """A TensorRT logger that hands (severity in lower case, text) on. One a process: TensorRT ignores a second."""

    class Logger(trt.ILogger):  # type: ignore[misc, name-defined]
        def log(self, severity: Any, text: str) -> None:
            take(severity.name.lower(), text)

    return Logger()


class ProgressSink(Protocol):
    """What hears of the builder's phases. Called from inside the build: it has to be quick and must not raise."""

    def started(self, phase: str, steps: int) -> None: ...
    def completed(self, phase: str, step: int) -> None: ...


def progress_monitor(trt: TensorRT, sink: ProgressSink) -> Any:
    """A TensorRT progress monitor over `sink`. The config does not keep it alive; the caller has to."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc, name-defined]
        def phase_start(self, phase: str, _parent: str | None, steps: int) -> None:
            sink.started(phase, steps)

        def phase_finish(self, _phase: str) -> None:
            return

        def step_complete(self, phase: str, step: int) -> bool:
            sink.completed(phase, step)
            return True

    return Monitor()
