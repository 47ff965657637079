"""Floats that a Loop counts in."""

import pytest

from tests.worker.precision.planned import plan

LOOP = (
    "g (float[1,64] input) => (float[] output) "
    "<float start = {0}, float one = {1}, int64 turns = {3000}, bool go = {1}> "
    "{ x = MatMul(input, w) t, h = Loop(turns, go, %s, x) <body = body (int64 i, bool c, float ti, float[1,64] hi) => "
    "(bool cn, float tn, float[1,64] hn) { cn = Identity(c) tn = Add(ti, one) hn = Mul(hi, one) }> "
    "y = Mul(h, t) output = MatMul(y, w) }"
)


@pytest.mark.parametrize(("start", "counts"), [("start", True), ("x", False)], ids=["from a constant", "an activation"])
def test_a_float_that_counts_turns_is_exact(start: str, counts: bool) -> None:
    found = plan(LOOP % start, weights={"w": (64, 64)})
    assert ("tn" in found.island("exact integers")) is counts
    assert "hn" not in found.island("exact integers")
