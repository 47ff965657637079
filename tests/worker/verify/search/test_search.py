from dataclasses import replace
from pathlib import Path

import pytest

from tests.worker.verify.search.conftest import BOMB, Search, Write
from worker.conversion import convert, plan
from worker.precision.report import AutoReport
from worker.types import ConvertRequest
from worker.verify.check import verify
from worker.verify.search.search import Budget, search
from worker.verify.types import VerifyRequest

OTHER_SEED = 1000

SOFT = """
g (float[1,8,64] x) => (float[] y) { h = MatMul(x, w) p = Softmax<axis = -1>(h) y = MatMul(p, w) }
"""
RANDOM = """
g (float[1,8,64] x) => (float[] y) {
    h = MatMul(x, w) noise = RandomNormalLike<dtype = 1>(h) p = Softmax<axis = -1>(h) s = Add(p, noise) y = MatMul(s, w)
}
"""
POSITIONS = """
g (float[1,N,64] x) => (float[] y) <float one = {1}, float step = {0.001}, int64 first = {0}, int64 next = {1}> {
    shape = Shape<start = 1, end = 2>(x) count = Squeeze(shape) places = Range(first, count, next)
    place = Cast<to = 1>(places) angle = Mul(place, step) wave = Cos(angle) axes = Constant<value_ints = [0, 2]>()
    column = Unsqueeze(wave, axes) h = MatMul(x, w) t = Mul(h, column) y = MatMul(t, w)
}
"""
MARKED = """
g (float[1,8,64] x) => (float[] y) <float big = {1000}> {
    h = MatMul(x, w) half = Cast<to = 10>(h) marked = Cast<to = 1>(half)
    s = Add(marked, big) d = Sub(s, big) y = MatMul(d, w)
}
"""


def kept(report: AutoReport) -> list[str]:
    return [candidate.island for candidate in report.candidates if candidate.kept]


def test_the_island_of_an_overflow_is_found_from_none(write_model: Write, find: Search) -> None:
    report = find(write_model(BOMB))
    assert (report.outcome, kept(report)) == ("met", ["mean of squares of 'boiling', and the scaling by it"])
    assert report.cost is not None
    assert report.rope_cost is not None
    assert report.cost < report.rope_cost


def test_what_is_found_meets_the_target_on_other_inputs(write_model: Write, tmp_path: Path) -> None:
    source, target = write_model(BOMB), tmp_path / "converted.onnx"
    convert(ConvertRequest(source, target, mode="auto"))
    assert verify(VerifyRequest(source, target, seed=OTHER_SEED)).verdict == "passed"


def test_without_any_island_the_verdict_fails(write_model: Write, tmp_path: Path) -> None:
    source, target = write_model(BOMB), tmp_path / "naive.onnx"
    convert(ConvertRequest(source, target, keep_trunk=("*",)))
    verdict = verify(VerifyRequest(source, target))
    assert verdict.verdict == "failed"
    assert verdict.culprit is not None
    assert verdict.culprit.tensor == "boiling_s"


def test_a_model_without_hazards_keeps_nothing(write_model: Write, find: Search) -> None:
    report = find(write_model(SOFT), target_cosine=0.99)
    assert (report.outcome, kept(report), report.cost) == ("met", [], 0.0)


def test_a_higher_target_keeps_more(write_model: Write, find: Search) -> None:
    source = write_model(BOMB)
    costs = [find(source, target_cosine=target).cost for target in (0.9, 0.999, 0.9999998)]
    assert costs == sorted(costs, key=lambda cost: cost or 0.0)
    assert costs[0] != costs[-1]


def test_a_target_out_of_reach_is_missed_and_all_is_kept(write_model: Write, find: Search) -> None:
    report = find(write_model(BOMB), target_cosine=1.0)
    assert report.outcome == "missed"
    assert report.recipe.keep_trunk == ()
    assert "every island of mode rope is kept, and yet output 'y' has cosine" in report.reason


def test_mode_full_is_taken_where_rope_misses_the_target(write_model: Write, tmp_path: Path) -> None:
    request = ConvertRequest(write_model(MARKED), tmp_path / "out.onnx", mode="auto")
    report = convert(request).auto
    assert report is not None
    assert (report.outcome, report.recipe.mode) == ("met", "full")
    assert report.reason == "mode rope misses the target, mode full meets it"
    assert verify(VerifyRequest(request.source, request.target, seed=OTHER_SEED)).verdict == "passed"


def test_angles_of_positions_stay_whatever_the_samples_say(write_model: Write, find: Search) -> None:
    report = find(write_model(POSITIONS), target_cosine=0.5)
    reasons = {candidate.family: candidate.reason for candidate in report.candidates}
    assert "depends on lengths" in reasons["angle"]
    assert all(candidate.kept for candidate in report.candidates if candidate.family == "angle")


@pytest.mark.parametrize(
    ("text", "budget", "reason"),
    [
        (RANDOM, Budget(60.0, 8 << 30), "the graph draws random numbers"),
        (BOMB, Budget(60.0, 8 << 30, weight_bytes=1), "weights"),
    ],
)
def test_what_cannot_be_run_falls_back_to_rope_and_says_so(
    text: str, budget: Budget, reason: str, write_model: Write, tmp_path: Path
) -> None:
    source = write_model(text)
    request = ConvertRequest(source, tmp_path / "out.onnx", mode="auto")
    chosen, report = search(request, budget=budget)
    assert chosen == replace(request, mode="rope")
    assert report.outcome == "fell back"
    assert reason in report.reason


def test_a_fallback_is_a_finding(write_model: Write, tmp_path: Path) -> None:
    report = convert(ConvertRequest(write_model(RANDOM), tmp_path / "out.onnx", mode="auto"))
    assert report.findings[0].kind == "auto fell back"
    assert report.mode == "auto"


@pytest.mark.parametrize("mode", ["auto", "rope"])
def test_a_recipe_gives_the_same_bytes(mode: str, write_model: Write, tmp_path: Path) -> None:
    source = write_model(BOMB)
    request = ConvertRequest(source, tmp_path / "out.onnx", mode="auto")
    report = convert(request)
    assert report.auto is not None
    again = request if mode == "auto" else replace(request, **dict(report.auto.recipe))
    second = convert(replace(again, target=tmp_path / "again.onnx"))
    assert (tmp_path / "again.onnx").read_bytes() == request.target.read_bytes()
    assert second.islands == report.islands
    assert second.auto == (report.auto if mode == "auto" else None)


def test_the_front_goes_from_cheap_to_accurate(write_model: Write, find: Search) -> None:
    front = find(write_model(BOMB), target_cosine=0.9999998).front
    assert [point.cost for point in front] == sorted(point.cost for point in front)
    assert [(point.nonfinite, -point.cosine) for point in front] == sorted(
        ((point.nonfinite, -point.cosine) for point in front), reverse=True
    )


def test_a_plan_of_mode_auto_is_what_was_chosen(write_model: Write, tmp_path: Path) -> None:
    planned = plan(ConvertRequest(write_model(BOMB), tmp_path / "out.onnx", mode="auto"))
    assert [island.family for island in planned.plan.islands] == ["normalization"]
