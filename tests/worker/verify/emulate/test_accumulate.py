"""Pessimistic accumulation: what a GPU may do to sums in half, and what it may not do to small ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from worker.graph.load import load
from worker.verify.accumulate import accumulate_in_half
from worker.verify.emulate import emulate
from worker.verify.session import Session
from worker.verify.watchdog import Watchdog

Write = Callable[..., Path]


def run_pessimistic(path: Path, **feed: np.ndarray) -> np.ndarray:
    skeleton = load(path)
    left = accumulate_in_half(skeleton)
    assert left == ()
    emulate(skeleton)
    return Session(skeleton, path.parent, "model").run(feed, Watchdog(60, 8 << 30))["y"]


@pytest.mark.parametrize(
    ("body", "rows", "expected"),
    [
        ("a = Constant<value_ints = [-1]>() y = ReduceMean<keepdims = 0>(x, a)", 262_144, np.inf),
        ("a = Constant<value_ints = [-1]>() y = ReduceSum<keepdims = 0>(x, a)", 70_000, np.inf),
        ("a = Constant<value_ints = [-1]>() y = ReduceL2<keepdims = 0>(x, a)", 70_000, np.inf),
        ("p = Softmax<axis = -1>(x) a = Constant<value_ints = [-1]>() y = ReduceMax<keepdims = 0>(p, a)", 65_600, 0.0),
        ("a = Constant<value_ints = [-1]>() y = ReduceMean<keepdims = 0>(x, a)", 2_048, 1.0),
        ("a = Constant<value_ints = [-1]>() y = ReduceSum<keepdims = 0>(x, a)", 3, 3.0),
        (
            "p = Softmax<axis = -1>(x) a = Constant<value_ints = [-1]>() y = ReduceMax<keepdims = 0>(p, a)",
            1_024,
            2**-10,
        ),
        ("t = Transpose(x) m = MatMul(x, t) a = Constant<value_ints = [-1]>() y = Squeeze(m, a)", 70_000, np.inf),
        ("y0 = Gemm<transB = 1>(x, x) a = Constant<value_ints = [-1]>() y = Squeeze(y0, a)", 5, 5.0),
    ],
)
def test_sums_of_ones_end_where_half_ends(write: Write, body: str, rows: int, expected: float) -> None:
    path = write(f"g (float16[1, n] x) => (float16[1] y) {{ {body} }}")
    assert run_pessimistic(path, x=np.ones((1, rows), np.float16)) == pytest.approx(np.array([expected]), nan_ok=True)


@pytest.mark.parametrize("pool", ["GlobalAveragePool(x)", "AveragePool<kernel_shape = [512, 512]>(x)"])
def test_pools_add_up_before_they_divide(write: Write, pool: str) -> None:
    path = write(f"g (float16[1, 1, 512, 512] x) => (float16[1, 1, 1, 1] y) {{ y = {pool} }}")
    assert np.isinf(run_pessimistic(path, x=np.ones((1, 1, 512, 512), np.float16))).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "body",
    [
        "y0 = Softmax(v)", "y0 = LogSoftmax(v)", "y0 = MatMul(v, u)", "y0 = Gemm(v, u)",
        "y0 = LayerNormalization(v, o)", "y0 = ReduceLogSumExp<keepdims = 1>(v)", "y0 = ReduceL1(v)",
    ],
)  # fmt: skip
def test_moderate_values_stay_close_to_fp32(write: Write, body: str, dtype: str) -> None:
    number = {"float16": 10, "bfloat16": 16}[dtype]
    text = f"""g (float[9, 9] x) => (float[p, q] y) {{ ones = Constant<value = float[1] {{1.0}}>()
               v = Cast<to = {number}>(x) o = Cast<to = {number}>(ones) u = Transpose(v) {body}
               y = Cast<to = 1>(y0) }}"""
    path, exact = write(text), write(text.replace(f"<to = {number}>", "<to = 1>"), "exact.onnx")
    x = np.random.default_rng(0).standard_normal((9, 9)).astype(np.float32)
    reference = Session(load(exact), exact.parent, "exact").run({"x": x}, Watchdog(60, 8 << 30))["y"]
    got = run_pessimistic(path, x=x)
    assert np.abs(got - reference).max() <= {10: 0.02, 16: 0.2}[number] * max(1.0, np.abs(reference).max())
    assert not np.array_equal(got, reference)


def test_products_with_weights_add_up_too(write: Write) -> None:
    text = """g (float16[1, 70000] x) => (float16[1, 1] y) { shape = Constant<value_ints = [70000, 1]>()
        w = ConstantOfShape<value = float16[1] {half(1)}>(shape) y = MatMul(x, w) }"""
    assert np.isinf(run_pessimistic(write(text), x=np.ones((1, 70_000), np.float16))).all()


@pytest.mark.parametrize("channels", [1, 3, 20])
def test_convolutions_add_up_over_channels(write: Write, channels: int) -> None:
    shape = f"float16[1, {channels}, 5, 5]"
    weights = f"float16[2, {channels}, 3, 3]"
    path = write(f"g ({shape} x, {weights} w, float16[2] b) => (float16[a, c, d, e] y) {{ y = Conv(x, w, b) }}")
    ones = (np.ones(s, np.float16) for s in ((1, channels, 5, 5), (2, channels, 3, 3), 2))
    got = run_pessimistic(path, **dict(zip("xwb", ones, strict=True)))
    assert np.array_equal(got, np.full((1, 2, 3, 3), 9 * channels + 1))


def test_float32_adds_up_as_before(write: Write) -> None:
    path = write("g (float[1, n] x) => (float[] y) { y = ReduceSum<keepdims = 0>(x) }")
    assert run_pessimistic(path, x=np.ones((1, 70_000), np.float32)) == 70_000


def test_what_cannot_be_dealt_out_is_told(write: Write) -> None:
    skeleton = load(
        write(
            "g (float16[1, n] x) => (float16[a, b] y) { [total] y = Einsum<equation = 'ij,ij->ij'>(x, x) }".replace(
                "'", '"'
            )
        )
    )
    assert [node.label for node in accumulate_in_half(skeleton)] == ["total"]
