from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.errors import ChildStopped, ProblemError
from worker.child import run_child
from worker.verify.run import verify_conversion
from worker.verify.types import VerifyRequest

Write = Callable[..., Path]

SOURCE = "g (float[n, 4] x) => (float[n, 4] y) { s = Mul(x, x) y = Sqrt(s) }"
HALF = "g (float[n, 4] x) => (float[n, 4] y) { h = Cast<to = 10>(x) s = Mul(h, h) r = Sqrt(s) y = Cast<to = 1>(r) }"
UNTYPED = HALF.replace("Mul(h, h)", "Mul(h, x)")


@pytest.fixture
def request_of(write: Write) -> Callable[[str], VerifyRequest]:
    def make(converted: str) -> VerifyRequest:
        profile = {"x": ((1, 4), (8, 4), (16, 4))}
        return VerifyRequest(write(SOURCE, "a.onnx"), write(converted, "b.onnx"), (profile,), seconds=60)

    return make


def test_a_verdict_comes_back_with_its_figures(request_of: Callable[[str], VerifyRequest]) -> None:
    events: list[Mapping[str, Any]] = []
    verdict = verify_conversion(request_of(HALF), on_event=events.append)
    assert verdict.verdict == "passed"
    assert [figures.name for figures in verdict.outputs] == ["y"]
    assert [(event["phase"], event["step"], event["of"]) for event in events] == [
        ("running FP32", 0, 2),
        ("running FP32", 1, 2),
        ("running half emulation", 0, 2),
        ("running half emulation", 1, 2),
    ]


def test_a_fault_in_the_structure_is_a_problem(request_of: Callable[[str], VerifyRequest]) -> None:
    with pytest.raises(ProblemError, match="inconsistent type") as caught:
        verify_conversion(request_of(UNTYPED))
    assert caught.value.problem().slug == "check-failed"


def test_a_child_over_its_memory_has_proved_nothing(request_of: Callable[[str], VerifyRequest]) -> None:
    verdict = verify_conversion(replace(request_of(HALF), memory_bytes=1 << 20))
    assert verdict.verdict == "not verified"
    assert "1 MiB are allowed" in str(verdict.reason)


def test_a_stop_is_passed_on(request_of: Callable[[str], VerifyRequest]) -> None:
    with pytest.raises(ChildStopped):
        verify_conversion(request_of(HALF), should_stop=lambda: True)


def test_the_smallest_request_has_defaults(request_of: Callable[[str], VerifyRequest]) -> None:
    request = request_of(HALF)
    answer = run_child(
        "worker.verify", {"source": str(request.source), "converted": str(request.converted)}, timeout=60
    )
    assert answer["verdict"] == "passed"
