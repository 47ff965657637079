"""Verification as the rest of the worker sees it: a request in, a verdict out, always in a child process."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter

from service.errors import ChildCrashed, ChildTimeout, ResourceLimit
from worker.child import run_child
from worker.child.parent import OnEvent, ignore, never
from worker.verify.types import ShapeTriple, Verdict, VerifyRequest

MODULE = "worker.verify"
# The child ends its own runs in time; what it cannot interrupt (loading, comparing) gets this much more.
GRACE_SECONDS = 60.0


def verify_conversion(
    request: VerifyRequest, *, on_event: OnEvent = ignore, should_stop: Callable[[], bool] = never
) -> Verdict:
    """Check the structure of the converted graph, then its accuracy, within the request's budgets.

    Events: `{"event": "progress", "phase", "step", "of"}`. A child that dies of its budget or crashes has proved
    nothing: `not verified`.
    Raises ProblemError (`check-failed`, kinds of `invalid-model`) and ChildStopped.
    """
    try:
        answer = run_child(
            MODULE,
            encode(request),
            on_event=on_event,
            timeout=request.seconds + GRACE_SECONDS,
            should_stop=should_stop,
            memory_bytes=request.memory_bytes,
        )
    except (ChildTimeout, ResourceLimit, ChildCrashed) as death:
        return Verdict("not verified", death.detail)
    return TypeAdapter(Verdict).validate_python(answer)


def encode(request: VerifyRequest) -> dict[str, Any]:
    """The request as JSON values."""
    return {
        "source": str(request.source),
        "converted": str(request.converted),
        "profiles": [_ranges(profile) for profile in request.profiles],
        "target_cosine": request.target_cosine,
        "seed": request.seed,
        "seconds": request.seconds,
        "memory_bytes": request.memory_bytes,
        "weight_bytes": request.weight_bytes,
        "samples": [str(path) for path in request.samples],
        "pessimistic": request.pessimistic,
        "ranges": request.ranges,
        "any_interface": request.any_interface,
    }


def _ranges(profile: Mapping[str, ShapeTriple]) -> dict[str, dict[str, list[int]]]:
    return {
        name: {bound: list(shape) for bound, shape in zip(("min", "opt", "max"), triple, strict=True)}
        for name, triple in profile.items()
    }
