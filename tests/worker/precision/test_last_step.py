"""Arithmetic whose only readers are FP32 moves its cast before it; never when a reader turns out to be half."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

NORM = "p = Pow(r, two) v = ReduceMean<axes = [-1], keepdims = 1>(p) e = Add(v, eps) s = Sqrt(e) y = Div(r, s)"


@pytest.mark.parametrize(
    ("body", "half"),
    [
        (f"r = Mul(x, half_of) {NORM}", False),
        (f"a = Mul(x, half_of) b = Relu(x) r = Add(a, b) {NORM}", True),
        ("r = Mul(x, half_of) t = Transpose<perm = [0, 2, 1]>(r) y = MatMul(t, r)", True),
    ],
    ids=["a norm reads it", "a sum in half reads it", "a product reads it"],
)
def test_scaling_follows_its_reader(body: str, half: bool) -> None:
    found = plan_in_trunk(body, constants="float half_of = {0.5}")
    scaling = "r" if "r = Mul" in body else "a"
    assert (scaling in found.half()) is half
