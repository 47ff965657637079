"""Integers that are carried in floats: beyond 2048 (FP16) or 256 (BF16) half cannot hold each of them."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

SIZES = {
    "half of a height, floored": (
        "h = Shape(x) s = Slice(h, axis0, axis1) f = Cast<to = 1>(s) m = Mul(f, zero) g = Floor(m) i = Cast<to = 7>(g) "
        "k = Expand(one, i) y = Mul(x, k)",
        "f m g i",
    ),
    "positions by a running sum over a mask": (
        "b = Cast<to = 1>(mask) p = CumSum(b, step) q = Sub(p, one) i = Cast<to = 7>(q) e = Cast<to = 1>(i) "
        "u = Unsqueeze(e, last) y = Add(x, u)",
        "b p q i e u",
    ),
    "a grid of pixels": (
        "h = Shape(x) n = Gather<axis = 0>(h, step) m = Cast<to = 1>(n) r = Range(zero, m, one) a = Add(r, one) "
        "d = Div(a, m) u = Unsqueeze(d, axis1) y = Mul(x, u)",
        "m r a d u",
    ),
    "a time step as an integer": (
        "f = Cast<to = 1>(step_id) d = Div(f, two) u = Unsqueeze(d, last) y = Add(x, u)",
        "f d u",
    ),
}


@pytest.mark.parametrize("mode", ["minimal", "rope"])
@pytest.mark.parametrize(("body", "nodes"), SIZES.values(), ids=SIZES)
def test_arithmetic_on_integers_is_fp32(body: str, nodes: str, mode: str) -> None:
    planned = plan_in_trunk(body, 17, inputs="int64[1,8] mask, int64[1] step_id", mode=mode)
    assert planned.island("exact integers") == set(nodes.split())
    assert planned.half() >= {"x", "output"}


@pytest.mark.parametrize("dtype", [2, 3, 9], ids=["uint8", "int8", "bool"])
def test_bytes_are_exact_in_half(dtype: int) -> None:
    names = {2: "uint8", 3: "int8", 9: "bool"}
    planned = plan_in_trunk("f = Cast<to = 1>(pixels) y = Mul(x, f)", inputs=f"{names[dtype]}[1,8,64] pixels")
    assert planned.island("exact integers") == set()


def test_of_an_activation_only_the_rounding_to_an_integer_is_fp32() -> None:
    planned = plan_in_trunk("g = Round(x) i = Cast<to = 7>(g) f = Cast<to = 1>(i) p = MatMul(f, w) y = Add(x, p)")
    assert planned.island("exact integers") == {"g", "f"}
    assert planned.half() >= {"x", "p", "y"}


def test_integers_end_where_an_activation_joins() -> None:
    planned = plan_in_trunk("f = Cast<to = 1>(ids) u = Unsqueeze(f, last) y = Add(x, u)", inputs="int64[1,8] ids")
    assert "y" in planned.half()
