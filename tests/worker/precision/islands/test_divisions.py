"""Divisors that a small bound keeps from zero."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

GUARDED = {
    "mean over what a mask keeps": (
        "f = Cast<to = 1>(mask) u = Unsqueeze(f, last) p = Mul(x, u) s = ReduceSum(p, axis1) c = ReduceSum(u, axis1) "
        "d = Clip(c, tiny) y = Div(s, d)",
        "d y",
    ),
    "weights that are made to sum up to one": (
        "a = Relu(x) s = ReduceSum(a, last) d = Add(s, eps) y = Div(a, d)",
        "d y",
    ),
    "by the reciprocal": ("a = Relu(x) s = ReduceSum(a, last) d = Max(s, tiny) i = Reciprocal(d) y = Mul(a, i)", "d i"),
    "expanded on the way": (
        "a = Relu(x) s = ReduceSum(a, last) d = Clip(s, tiny) h = Shape(x) e = Expand(d, h) y = Div(a, e)",
        "d e y",
    ),
    "under a root": ("a = Relu(x) d = Add(a, eps) r = Sqrt(d) y = Div(x, r)", "d r y"),
}
HARMLESS = {
    "a bound that half holds": "a = Relu(x) d = Clip(a, one) y = Div(x, d)",
    "nothing is divided by it": "d = Add(x, tiny) y = Mul(d, x)",
    "it is what is divided": "d = Add(x, eps) y = Div(d, x)",
    "a bound of zero": "d = Clip(x, zero) y = Div(x, d)",
}


@pytest.mark.parametrize(("body", "nodes"), GUARDED.values(), ids=GUARDED)
def test_bound_and_division_are_fp32(body: str, nodes: str) -> None:
    planned = plan_in_trunk(body, inputs="int64[1,8] mask", mode="minimal")
    assert planned.island("guarded division") == set(nodes.split())
    assert planned.half() >= {"x", "output"}


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS)
def test_other_divisions_belong_to_the_trunk(body: str) -> None:
    planned = plan_in_trunk(body)
    assert planned.island("guarded division") == set()
    assert "y" in planned.half()


def test_bf16_holds_small_bounds() -> None:
    planned = plan_in_trunk("a = Relu(x) d = Add(a, tiny) y = Div(x, d)", trunk="bf16")
    assert planned.island("guarded division") == set()
