"""Parsing and building as the rest of the worker sees them: values in, values out, always in a child process."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from worker.child import run_child
from worker.child.parent import OnEvent, ignore, never
from worker.engine.files import partial_of
from worker.types import EngineRequest, EngineResult, NetworkFacts

MODULE = "worker.engine"


def build_engine(
    request: EngineRequest,
    *,
    on_event: OnEvent = ignore,
    timeout: float,
    should_stop: Callable[[], bool] = never,
    memory_bytes: int | None = None,
) -> EngineResult:
    """Build an engine; `timeout` in seconds. The target appears whole or not at all, and nothing else stays.

    Events: `{"event": "progress", "phase", "step", "of"}` and `{"event": "message", "severity", "text"}`.
    Raises ProblemError (`parser-refused`, `unsupported-op`, `missing-profile`, `invalid-options`, `no-worker`,
    `builder-failed`, …), ChildCrashed, ChildTimeout, ChildStopped, ResourceLimit.
    """
    encoded = TypeAdapter(EngineRequest).dump_python(request, mode="json")
    try:
        answer = run_child(
            MODULE,
            {"build": encoded},
            on_event=on_event,
            timeout=timeout,
            should_stop=should_stop,
            memory_bytes=memory_bytes,
        )
    finally:
        partial_of(request.target).unlink(missing_ok=True)
    return TypeAdapter(EngineResult).validate_python(answer)


def parse_network(
    onnx: Path,
    toolchain: str,
    *,
    on_event: OnEvent = ignore,
    timeout: float,
    should_stop: Callable[[], bool] = never,
    memory_bytes: int | None = None,
) -> NetworkFacts:
    """Let TensorRT's strongly typed parser read a graph; nothing is built. Events and errors as of `build_engine`."""
    request: Mapping[str, Any] = {"parse": {"onnx": str(onnx), "toolchain": toolchain}}
    answer = run_child(
        MODULE, request, on_event=on_event, timeout=timeout, should_stop=should_stop, memory_bytes=memory_bytes
    )
    return TypeAdapter(NetworkFacts).validate_python(answer)
