"""The child process that owns TensorRT: one request, one network or engine."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from worker.child import Emit, serve
from worker.engine.builder import engine_from_onnx, network_from_onnx
from worker.engine.toolchains import toolchain_named
from worker.types import EngineRequest, EngineResult, NetworkFacts

T = TypeVar("T")


def answer(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """`{"build": EngineRequest}` gives an EngineResult, `{"parse": {"onnx", "toolchain"}}` gives NetworkFacts."""
    if "parse" in request:
        toolchain = toolchain_named(request["parse"]["toolchain"])
        parsed = network_from_onnx(Path(request["parse"]["onnx"]), toolchain, emit)
        return _json(TypeAdapter(NetworkFacts), parsed.facts())
    engine_request = TypeAdapter(EngineRequest).validate_python(request["build"])
    return _json(TypeAdapter(EngineResult), engine_from_onnx(engine_request, emit))


def _json(adapter: TypeAdapter[T], value: T) -> dict[str, Any]:
    encoded: dict[str, Any] = adapter.dump_python(value, mode="json")
    return encoded


if __name__ == "__main__":
    serve(answer)
