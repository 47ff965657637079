"""The child process that verifies: one request as JSON, one verdict."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from worker.child import Emit, serve
from worker.verify.check import verify
from worker.verify.static import check_structure
from worker.verify.types import ShapeTriple, VerifyRequest

_OPTIONAL = (
    "target_cosine",
    "seed",
    "seconds",
    "memory_bytes",
    "weight_bytes",
    "pessimistic",
    "ranges",
    "any_interface",
)


def handle(request: dict[str, Any], emit: Emit) -> Mapping[str, Any]:
    """`{source, converted, profiles, samples, target_cosine, …}` -> the verdict as JSON values.

    Raises CheckFailed, and InvalidSample.
    """

    def progress(phase: str, step: int, of: int) -> None:
        emit({"event": "progress", "phase": phase, "step": step, "of": of})

    source, converted = Path(request["source"]), Path(request["converted"])
    if not request.get("any_interface", False):
        check_structure(source, converted)
    options = {name: request[name] for name in _OPTIONAL if name in request}
    profiles = tuple(_profile(profile) for profile in request.get("profiles", ()))
    samples = tuple(Path(path) for path in request.get("samples", ()))
    return asdict(verify(VerifyRequest(source, converted, profiles, samples=samples, **options), progress))


def _profile(profile: Mapping[str, Mapping[str, Any]]) -> dict[str, ShapeTriple]:
    return {name: (tuple(r["min"]), tuple(r["opt"]), tuple(r["max"])) for name, r in profile.items()}


if __name__ == "__main__":
    serve(handle)
