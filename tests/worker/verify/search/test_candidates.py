import math

import pytest

from tests.worker.precision.planned import Planned, parse, plan_in_trunk, plan_model, with_weights
from worker.verify.search.candidates import candidates
from worker.verify.search.hazards import hazards
from worker.verify.search.types import Candidate, Drift, Observation

NORM = "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) e = Add(m, eps) r = Sqrt(e) y = Div(x, r)"
SHAPES = dict.fromkeys(("x", "s", "y"), (1, 8, 64)) | dict.fromkeys(("m", "e", "r"), (1, 8, 1))


def found(planned: Planned) -> tuple[Candidate, ...]:
    return candidates(planned.graph, planned.plan)


@pytest.mark.parametrize(
    ("body", "options", "family", "obstacle"),
    [
        ("p = Softmax<axis = -1>(x) y = Mul(p, two)", {}, "softmax", None),
        (NORM, {}, "normalization", None),
        ("a = Abs(x) b = Clip(a, tiny) y = Div(x, b)", {}, "guarded division", "it divides by zero only on inputs"),
        ("y = CumSum(x, step)", {}, "long reduction", "how a GPU accumulates"),
        ("y = Mul(x, two)", {"keep_fp32": ("Mul",)}, "requested", "keep_fp32 asks for it"),
    ],
)
def test_hazards_that_no_run_shows_are_obstacles(
    body: str, options: dict[str, tuple[str, ...]], family: str, obstacle: str | None
) -> None:
    (candidate,) = [one for one in found(plan_in_trunk(body, **options)) if one.island.family == family]
    assert candidate.obstacle is None if obstacle is None else obstacle in str(candidate.obstacle)


def test_an_island_that_cannot_be_named_alone_stays() -> None:
    text = "g (float[1,8,64] x) => (float[] y) { h = MatMul(x, w) p = Softmax<axis = -1>(h) y = MatMul(p, w) }"
    model = with_weights(parse(text), {"w": (64, 64)})
    model.graph.node[1].name = model.graph.node[2].name = "twin"
    (candidate,) = found(plan_model(model))
    assert candidate.obstacle is not None
    assert "the same names" in candidate.obstacle


@pytest.mark.parametrize(
    ("peaks", "drift", "reason"),
    [
        ({"x": 3.0, "s": 9.0}, 0.01, None),
        ({"x": 3.0, "s": 9.0}, math.inf, "in fp16 it gives infinite or undefined values"),
        ({"x": 150.0, "s": 22500.0}, 0.01, "a value of node 'Pow:s' reaches 2.25e+04 of 65504"),
        ({"x": 100.0, "s": 10000.0, "m": 1000.0}, 0.01, "a sum of node 'ReduceMean:m' reaches 6.4e+04 of 65504"),
    ],
)
def test_what_comes_close_to_overflow_stays(peaks: dict[str, float], drift: float, reason: str | None) -> None:
    planned = plan_in_trunk(NORM)
    every = found(planned)
    seen = Observation(SHAPES, peaks, {0: Drift(drift)})
    told = hazards(planned.graph, planned.plan.half, every, seen)
    assert set(told) == (set() if reason is None else {0})
    assert reason is None or reason in told[0]
