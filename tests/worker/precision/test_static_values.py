"""Expressions of constants are judged by what they give."""

import pytest

from tests.worker.precision.planned import plan_in_trunk


@pytest.mark.parametrize(
    ("constants", "half"),
    [("float slope = {0.5}", True), ("float slope = {1e-9}", False)],
    ids=["1 / (beta + tiny) is ordinary", "1 / (beta + tiny) is beyond half"],
)
def test_a_tiny_constant_inside_an_expression(constants: str, half: bool) -> None:
    found = plan_in_trunk("a = Add(slope, tiny) b = Reciprocal(a) y = Mul(x, b)", constants=constants)
    assert ("y" in found.half()) is half
    assert "b" not in found.half()


@pytest.mark.parametrize(("steps", "half"), [(4, False), (40, True)])
def test_only_a_short_tail_before_an_fp32_reader_is_fp32(steps: int, half: bool) -> None:
    chain = " ".join(f"t{step} = Mul({f't{step - 1}' if step else 'x'}, two)" for step in range(steps))
    norm = f"p = Pow(t{steps - 1}, two) v = ReduceMean<axes = [-1]>(p) e = Add(v, eps) s = Sqrt(e)"
    found = plan_in_trunk(f"{chain} {norm} y = Div(t{steps - 1}, s)")
    assert ("t0" in found.half()) is half
    assert f"t{steps - 1}" not in found.half() or half
