"""Sums over many elements."""

import pytest

from tests.worker.precision.planned import Planned, plan

LONG = {
    "mean over an image": (17, "r = ReduceMean<axes = [2, 3]>(x)"),
    "mean with axes as input": (18, "r = ReduceMean(x, axes)"),
    "mean over negative axes": (17, "r = ReduceMean<axes = [-1, -2]>(x)"),
    "mean over all": (17, "r = ReduceMean(x)"),
    "sum": (17, "r = ReduceSum(x, axes)"),
    "global average pool": (17, "r = GlobalAveragePool(x)"),
    "average pool with a large kernel": (17, "r = AveragePool<kernel_shape = [32, 32]>(x)"),
    "L1 norm": (17, "r = ReduceL1<axes = [2, 3]>(x)"),
    "product": (17, "r = ReduceProd<axes = [1]>(x)"),
}
SHORT = {
    "mean over channels": (17, "r = ReduceMean<axes = [1]>(x)", 16),
    "average pool": (17, "r = AveragePool<kernel_shape = [2, 2]>(x)", 4),
    "sum over one axis": (17, "r = ReduceSum(x, one_axis)", 512),
}


def pooled(body: str, opset: int, size: str = "512", **options: object) -> Planned:
    return plan(
        f"g (float[1,16,{size},{size}] input) => (float[] output) "
        "<int64[2] axes = {2, 3}, int64[1] one_axis = {2}> "
        f"{{ x = Conv(input, k) {body} p = Add(r, r) output = MatMul(p, p) }}",
        opset,
        {"k": (16, 16, 1, 1)},
        **options,
    )


@pytest.mark.parametrize(("opset", "body"), LONG.values(), ids=LONG)
def test_a_long_reduction_is_fp32_and_tells_its_length(opset: int, body: str) -> None:
    planned = pooled(body, opset, mode="minimal")
    assert planned.island("long reduction") == {"r"}
    assert planned.reason("r").startswith("long reduction: ")


@pytest.mark.parametrize(("opset", "body", "count"), SHORT.values(), ids=SHORT)
def test_a_short_reduction_is_declined_with_its_length(opset: int, body: str, count: int) -> None:
    planned = pooled(body, opset)
    assert planned.declined("long reduction") == [f"it sums {count} elements, fewer than 1024"]
    assert "r" in planned.half()


def test_a_reduction_of_unknown_length_is_taken_for_long() -> None:
    planned = pooled("r = ReduceMean<axes = [2, 3]>(x)", 17, "S")
    assert "unknown number" in planned.reason("r")


def test_a_sum_divided_by_its_count_is_fp32_where_the_count_does_not_fit() -> None:
    planned = plan(
        "g (float[1,16,512,512] input) => (float[] output) "
        "<int64[2] axes = {2, 3}, float count = {262144}> "
        "{ x = Conv(input, k) s = ReduceSum(x, axes) m = Div(s, count) output = MatMul(m, m) }",
        weights={"k": (16, 16, 1, 1)},
    )
    assert not planned.half() & {"s", "m"}


@pytest.mark.parametrize(("side", "long"), [(31, False), (32, True)])
def test_the_largest_shape_of_a_profile_tells_the_length(side: int, long: bool) -> None:
    planned = pooled("r = ReduceMean<axes = [2, 3]>(x)", 17, "S", max_shapes={"input": (1, 16, side, side)})
    assert (planned.island("long reduction") == {"r"}) is long
