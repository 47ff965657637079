"""Masks of attention cores: finite ones stay finite, infinite ones infinite."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.worker.precision.conftest import Convert
from tests.worker.precision.planned import Planned, parse, plan_in_trunk
from worker.graph.dtype import FP16

CORE = "t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(x, t) a = Add(s, b) p = Softmax<axis = -1>(a) y = MatMul(p, x)"
CONSTANTS = (
    "float lowest = {-3.4028e38}, float billion = {-1e9}, float million_millions = {-1e12}, "
    "float minus_infinity = {-inf}, float small = {-10000}, int64[3] shape = {1,8,8}"
)
INPUTS = "bool[1,8,8] keep, float[1,8,8] bias, float[1,8,8] m"

HUGE = {
    "lowest FP32 in a Where": ("b = Where(keep, zero, lowest)", "lowest", "b"),
    "-1e9 in a Where": ("b = Where(keep, zero, billion)", "billion", "b"),
    "one minus mask, times -1e12": ("d = Sub(one, m) b = Mul(d, million_millions)", "million_millions", "d b"),
    "filled and cut to a triangle": (
        "f = ConstantOfShape<value = float[1] {-1e9}>(shape) b = Trilu<upper = 1>(f, step)",
        "f",
        "f b",
    ),
    "added twice": (
        "c = Where(keep, zero, lowest) d = Where(keep, zero, lowest) b = Add(c, d)",
        "lowest",
        "c d b",
    ),
}
HARMLESS = {
    "-inf": "b = Where(keep, zero, minus_infinity)",
    "within range": "b = Where(keep, zero, small)",
    "a bias that was computed": "b = MatMul(bias, m)",
}


def planned(body: str, **options: object) -> Planned:
    return plan_in_trunk(f"{body} {CORE}", 17, CONSTANTS, INPUTS, **options)


@pytest.mark.parametrize(("body", "constant", "nodes"), HUGE.values(), ids=HUGE)
def test_a_huge_finite_mask_is_saturated_and_its_arithmetic_is_fp32(body: str, constant: str, nodes: str) -> None:
    found = planned(body)
    assert found.plan.saturate == {constant: 49152.0}
    assert found.findings("saturated") == [constant]
    assert {found.graph.nodes[index].output for index in found.plan.mask_nodes} == set(nodes.split())
    assert found.half() >= {"s", "a", "p", "y"}


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS)
def test_other_masks_are_left_as_they_are(body: str) -> None:
    found = planned(body)
    assert found.plan.saturate == {}
    assert found.half() >= {"s", "a", "p", "y"}


def test_bf16_holds_a_billion_and_saturates_the_lowest_only() -> None:
    assert planned("b = Where(keep, zero, billion)", trunk="bf16").plan.saturate == {}
    assert planned("b = Where(keep, zero, lowest)", trunk="bf16").plan.saturate.keys() == {"lowest"}


def test_a_mask_from_a_public_input_is_guarded() -> None:
    found = planned("b = Identity(bias)")
    assert found.plan.guard == {"b"}
    assert found.findings("guarded") == ["b"]


def test_a_where_on_the_scores_saturates_its_fill() -> None:
    body = (
        "t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(x, t) a = Where(keep, s, lowest) p = Softmax<axis = -1>(a) "
        "y = MatMul(p, x)"
    )
    found = plan_in_trunk(body, 17, CONSTANTS, INPUTS)
    assert found.plan.saturate == {"lowest": 49152.0}
    assert "a" in found.half()


def test_without_a_bounded_core_the_mask_needs_nothing() -> None:
    found = planned("b = Where(keep, zero, lowest)", bounded_attention=False)
    assert found.plan.saturate == {}
    assert "b" not in found.half()


# --- causal masks that exporters leave as constants, too large for a skeleton ----------------------------------------

TABLES = {
    "whole": ("a = Add(s, mask)", 64),
    "cut to length": ("h = Slice(mask, from, to, axes) a = Add(s, h)", 128),
}


@pytest.mark.parametrize("value", [-1e9, -3.4028e38, -np.inf])
@pytest.mark.parametrize(("body", "size"), TABLES.values(), ids=TABLES)
def test_a_causal_mask_of_any_size_is_saturated_and_an_infinite_one_kept(
    convert_model: Convert, body: str, size: int, value: float
) -> None:
    model = parse(
        "g (float[1,64,64] x) => (float[1,64,64] y) "
        "<int64[2] from = {0,0}, int64[2] to = {64,64}, int64[2] axes = {0,1}> "
        f"{{ t = Transpose<perm = [0,2,1]>(x) s = MatMul(x, t) {body} p = Softmax(a) y = MatMul(p, x) }}"
    )
    mask = np.where(np.tri(size, dtype=bool), 0, np.float32(value)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(mask, "mask"))
    found = convert_model(model)
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in found.model.graph.initializer}
    lowest = min(float(array.min()) for name, array in tensors.items() if name.startswith("mask"))
    assert lowest == (-np.inf if np.isinf(value) else FP16.mask_floor)
    assert found.report.attentions[0].bounded
