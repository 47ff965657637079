"""Angles: from positions, time steps or features to Cos and Sin."""

import pytest

from tests.worker.precision.planned import plan, plan_in_trunk

TABLES = {"freq": (32,), "table": (1, 8, 64)}
POSITIONS = "h = Shape(x) n = Gather<axis = 0>(h, step) r = Range(first, n, step)"
PAIR = "a = Concat<axis = -1>(t, t) c = Cos(a) s = Sin(a) u = Mul(x, c) v = Mul(x, s) y = Add(u, v)"

ROTARY = {
    "outer product by Einsum": (
        17,
        f'{POSITIONS} p = Cast<to = 1>(r) t = Einsum<equation = "i,j->ij">(p, freq) {PAIR}',
        "t a c s",
    ),
    "column times row": (
        20,
        f"{POSITIONS} p = Cast<to = 1>(r) q = Unsqueeze(p, axis1) t = Mul(q, freq) {PAIR}",
        "q t a c s",
    ),
    "matrix product of column and row": (
        17,
        f"{POSITIONS} p = Cast<to = 1>(r) q = Unsqueeze(p, axis1) f = Unsqueeze(freq, axis0) t = MatMul(q, f) {PAIR}",
        "q t a c s",
    ),
    "divided by wavelengths": (
        17,
        f"{POSITIONS} p = Cast<to = 1>(r) q = Unsqueeze(p, axis1) t = Div(q, freq) {PAIR}",
        "q t a c s",
    ),
    "positions as an input": (
        17,
        f"p = Cast<to = 1>(position_ids) q = Unsqueeze(p, last) t = Mul(q, freq) {PAIR}",
        "q t a c s",
    ),
    "a range of floats": (
        17,
        "h = Shape(x) n = Gather<axis = 0>(h, step) m = Cast<to = 1>(n) p = Range(zero, m, one) "
        f"q = Unsqueeze(p, axis1) t = Mul(q, freq) {PAIR}",
        "q t a c s",
    ),
    "rotated half by hand": (
        17,
        f"{POSITIONS} p = Cast<to = 1>(r) q = Unsqueeze(p, axis1) t = Mul(q, freq) a = Concat<axis = -1>(t, t) "
        "c = Cos(a) s = Sin(a) l, g = Split<axis = -1>(x) n2 = Neg(g) o = Concat<axis = -1>(n2, l) u = Mul(x, c) "
        "v = Mul(o, s) y = Add(u, v)",
        "q t a c s",
    ),
}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize(("opset", "body", "nodes"), ROTARY.values(), ids=ROTARY)
def test_a_rotary_angle_is_fp32_from_positions_to_cosine(opset: int, body: str, nodes: str, trunk: str) -> None:
    planned = plan_in_trunk(body, opset, "", "int64[1,8] position_ids", TABLES, trunk=trunk)
    assert planned.island("angle") | planned.island("exact integers") >= set(nodes.split())
    assert planned.half() >= {"x", "output"}


@pytest.mark.parametrize(("opset", "body", "nodes"), ROTARY.values(), ids=ROTARY)
def test_the_rotation_is_fp32_and_ends_with_its_sum(opset: int, body: str, nodes: str) -> None:
    planned = plan_in_trunk(body, opset, "", "int64[1,8] position_ids", TABLES)
    assert planned.island("rotation") == {"u", "v", "y"}


def test_minimal_leaves_the_rotation_to_the_trunk() -> None:
    planned = plan_in_trunk(ROTARY["column times row"][1], 20, weights=TABLES, mode="minimal")
    assert planned.island("rotation") == planned.island("angle") == set()


def test_tables_of_cosines_that_are_constants_have_no_angle() -> None:
    planned = plan_in_trunk("u = Mul(x, table) y = Add(u, x)", weights=TABLES)
    assert planned.islands() == set()


def test_fourier_features_of_a_time_step_are_fp32_up_to_the_first_projection() -> None:
    planned = plan_in_trunk(
        "n = Clip(t, zero, one) u = Unsqueeze(n, last) a = Mul(u, freq) c = Cos(a) s = Sin(a) "
        "f = Concat<axis = -1>(c, s) e = MatMul(f, w) y = Add(x, e)",
        inputs="float[1] t",
        weights=TABLES,
    )
    assert planned.island("angle") == {"n", "u", "a", "c", "s"}
    assert planned.island("rotation") == {"f"}
    assert planned.half() >= {"e", "x", "y", "output"}


def test_of_a_snake_activation_only_the_scaling_before_the_sine_is_fp32() -> None:
    planned = plan(
        "g (float[1,64,32] input) => (float[] output) <float two = {2}> "
        "{ x = Conv<pads = [1,1]>(input, k) a = Mul(x, alpha) s = Sin(a) q = Pow(s, two) b = Mul(q, inverse) "
        "y = Add(x, b) output = Conv<pads = [1,1]>(y, k) }",
        weights={"k": (64, 64, 3), "alpha": (1, 64, 1), "inverse": (1, 64, 1)},
    )
    assert planned.island("angle") == {"a", "s"}
    assert planned.half() >= {"x", "y", "output"}


def test_an_angle_that_two_cosines_share_is_claimed_once() -> None:
    body = f"p = Cast<to = 1>(position_ids) q = Unsqueeze(p, last) t = Mul(q, freq) {PAIR}"
    planned = plan_in_trunk(body, inputs="int64[1,8] position_ids", weights=TABLES)
    claimed = [node.output for island in planned.plan.islands for node in island.nodes]
    assert len(claimed) == len(set(claimed))


def test_the_rotary_operator_is_fp32() -> None:
    planned = plan_in_trunk("y = RotaryEmbedding<num_heads = 1>(x, half, half)", 23, weights={"half": (1, 8, 32)})
    assert planned.island("rotation") == {"y"}
