"""Nodes that no rule claims: half in the trunk, FP32 where casts around them would only round."""

import pytest

from tests.worker.precision.planned import Planned, plan, plan_in_trunk

HALF = {
    "arithmetic between products": ("y = Mul(x, two)", "y"),
    "arithmetic on two activations before an island": (
        "a = Add(x, x) z = MatMul(x, w) b = Add(a, z) y = Softmax(b)",
        "b",
    ),
    "movement between products": ("a = Transpose<perm = [0, 2, 1]>(x) y = Transpose<perm = [0, 2, 1]>(a)", "a y"),
    "arithmetic after an island": ("s = Softmax(x) y = Mul(s, x)", "y"),
    "an activation that trunk and island read": ("a = Tanh(x) s = Softmax(a) y = Add(a, s)", "a y"),
}
FP32 = {
    "movement between islands": ("s = Softmax(x) a = Transpose<perm = [0, 2, 1]>(s) y = Softmax(a)", "a"),
    "arithmetic between islands": ("s = Softmax(x) a = Mul(s, two) y = Softmax(a)", "a"),
    "the last step before an island": ("a = Mul(x, two) y = Softmax(a)", "a"),
    "what is computed of constants for an island": ("g = Mul(gamma, two) y = LayerNormalization(x, g)", "g"),
}


@pytest.mark.parametrize(("body", "nodes"), HALF.values(), ids=HALF)
def test_these_belong_to_the_trunk(body: str, nodes: str) -> None:
    assert plan_in_trunk(body).half() >= {*nodes.split(), "x", "output"}


@pytest.mark.parametrize(("body", "nodes"), FP32.values(), ids=FP32)
def test_these_lie_between_fp32_values(body: str, nodes: str) -> None:
    planned = plan_in_trunk(body)
    assert planned.half().isdisjoint(nodes.split())
    assert all("FP32" in planned.reason(node) for node in nodes.split())


def public(body: str) -> Planned:
    return plan(f"g (float[2,64] x, bool[2,64] c) => (float[2,64] y) {{ {body} }}", weights={"w": (64, 64)})


@pytest.mark.parametrize(
    ("body", "half"),
    [
        ("y = Transpose(x)", ""),
        ("a = Neg(x) y = Transpose(a)", ""),
        ("a = Neg(x) y = MatMul(a, w)", "a y"),
        ("a = Mul(x, x) y = MatMul(a, w)", "a y"),
        ("a = MatMul(x, w) y = Transpose(a)", "a y"),
        ("a = MatMul(x, w) y = Where(c, a, x)", "a y"),
    ],
    ids=["input to output", "twice", "of an input", "arithmetic on an input", "to an output", "a mixture"],
)
def test_movement_from_public_input_to_public_output_stays_fp32(body: str, half: str) -> None:
    assert public(body).half() == set(half.split())


@pytest.mark.parametrize("reader", ["Shape", "IsNaN", "NonZero"])
def test_readers_of_any_dtype_read_what_is_there(reader: str) -> None:
    in_half = plan_in_trunk(f"r = {reader}(x) y = Identity(x)")
    in_float = plan_in_trunk(f"s = Softmax(x) r = {reader}(s) y = Identity(s)")
    assert "r" in in_half.half()
    assert "r" not in in_float.half()
