"""Gates after the build, and what a failed verdict means: findings, and the failures among them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.builds.types import AccuracySpec, Trunk
from service.errors import CheckFailed, PrecisionNotBuilt
from worker.steps.check import enforce
from worker.steps.context import Verification, Work
from worker.steps.gates import findings_of
from worker.types import BuilderMessage, EngineResult

NORM = BuilderMessage("warning", "Running layernorm after self-attention in FP16 may overflow.", "norm-overflow")
SAMPLES = ("a" * 64,)


def job(**accuracy: Any) -> Any:
    return SimpleNamespace(spec=SimpleNamespace(trunk=Trunk.FP16, accuracy=AccuracySpec(**accuracy)))


def work(dtypes: dict[str, int], *, fused: int | None = 2, verdict: str = "passed", **facts: Any) -> Work:
    built = EngineResult(
        engine=Path("e"),
        size=1,
        toolchain="tensorrt-rtx",
        toolchain_version="1",
        platform="p",
        arch="portable",
        seconds=1.0,
        peak_rss=1,
        profiles=1,
        fused_attentions=fused,
        tensor_dtypes=dtypes,
        **facts,
    )
    report = {"counts": {"half_tensors": 8, "half_tensor_share": 0.8}, "attentions": [{"bounded": True}] * 2}
    return Work(graph=Path("g"), report=report, built=built, verification=Verification(verdict))


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (work({"half": 8, "float": 2}), []),
        (work({"half": 7, "float": 3}), []),
        (work({"half": 5, "float": 5}), ["fewer-half-tensors"]),
        (work({"half": 8, "float": 2}, fused=1), ["attention-not-fused"]),
        (work({"half": 8, "float": 2}, fused=None), []),
        (work({"half": 8, "float": 2}, messages=(NORM,)), ["norm-overflow"]),
        (work({"half": 8, "float": 2}, messages=(NORM,), verdict="not verified"), ["norm-overflow"]),
    ],
)
def test_what_differs_from_the_plan_is_a_finding(found: Work, kinds: list[str]) -> None:
    assert [finding["kind"] for finding in findings_of(job(), found)] == kinds


def test_far_fewer_half_tensors_than_planned_are_no_success() -> None:
    with pytest.raises(PrecisionNotBuilt, match="80% of the converted graph's float tensors have it, but 10%"):
        findings_of(job(), work({"half": 1, "float": 9}))


def test_a_norm_that_nobody_verified_fails_where_a_miss_is_fatal() -> None:
    unverified = work({"half": 8, "float": 2}, messages=(NORM,), verdict="not verified")
    with pytest.raises(CheckFailed, match="layernorm"):
        findings_of(job(on_fail="fail"), unverified)


@pytest.mark.parametrize(
    ("accuracy", "fatal"),
    [
        ({}, False),
        ({"samples": SAMPLES}, True),
        ({"samples": SAMPLES, "on_fail": "warn"}, False),
        ({"on_fail": "fail"}, True),
    ],
)
def test_a_missed_target_fails_on_samples_and_warns_on_generated_inputs(accuracy: dict[str, Any], fatal: bool) -> None:
    missed = Verification("failed", "cosine 0.9", 0.9, ({"name": "y", "nonfinite": 0},))
    if not fatal:
        enforce(job(**accuracy), missed)
        return
    with pytest.raises(CheckFailed, match=r"cosine 0\.9"):
        enforce(job(**accuracy), missed)


def test_overflow_always_fails_and_names_the_node() -> None:
    culprit = {"node": "/norm/Pow", "op": "Pow", "tensor": "p", "drift": None, "inherited": 0.0}
    broken = Verification("failed", "inf", 0.0, ({"name": "y", "nonfinite": 3},), culprit=culprit)
    with pytest.raises(CheckFailed, match="begins at node '/norm/Pow'") as failure:
        enforce(job(on_fail="warn"), broken)
    assert failure.value.extensions["culprit"] == culprit
