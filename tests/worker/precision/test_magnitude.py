"""Estimates from the weights alone: what may be large enough to be worth a run in FP32."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.worker.precision.planned import parse
from worker.graph.graph import Graph, analyze
from worker.graph.load import prepare
from worker.graph.skeleton import Skeleton
from worker.precision.magnitude import Magnitudes, suspects

WIDTH = 64


def graph(body: str, scale: float, hot: float | None = None) -> Graph:
    """`body` on weights w whose columns keep an activation's scale, times `scale`; `hot` is one column's value."""
    model: onnx.ModelProto = parse(f"g (float[2,{WIDTH}] x) => (float[] y) {{ {body} }}")
    values = np.random.default_rng(0).normal(0, scale * WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32)
    if hot is not None:
        values[:, 3] = hot
    ones = np.ones(WIDTH, np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(values, "w"), numpy_helper.from_array(ones, "gamma")])
    skeleton = Skeleton(model)
    prepare(skeleton)
    return analyze(skeleton)


@pytest.mark.parametrize(
    ("body", "scale", "expected"),
    [
        ("y = MatMul(x, w)", 1.0, 1.0),
        ("y = MatMul(x, w)", 10.0, 10.0),
        ("a = MatMul(x, w) y = MatMul(a, w)", 10.0, 100.0),
        ("a = MatMul(x, w) y = Add(a, x)", 10.0, 101**0.5),
        ("a = MatMul(x, w) y = LayerNormalization(a, gamma)", 100.0, 1.0),
        ("a = MatMul(x, w) y = Tanh(a)", 100.0, 0.5),
        ("a = MatMul(x, w) y = Transpose(a)", 10.0, 10.0),
    ],
    ids=["product", "larger weights", "two products", "residual", "norm", "bounded", "movement"],
)
def test_the_root_mean_square_follows_the_weights(body: str, scale: float, expected: float) -> None:
    assert Magnitudes(graph(body, scale)).estimate()["y"].rms == pytest.approx(expected, rel=0.1)


def test_one_large_column_shows_in_the_peak() -> None:
    found = Magnitudes(graph("y = MatMul(x, w)", 1.0, hot=1000.0)).estimate()["y"]
    assert found.peak == pytest.approx(1000 * WIDTH**0.5, rel=0.1)
    assert found.rms < found.peak


def test_only_activations_beyond_the_limit_are_suspects() -> None:
    found = graph("a = MatMul(x, w) b = LayerNormalization(a, gamma) y = MatMul(b, w)", 1.0, hot=1000.0)
    assert suspects(found, 8000.0) == {"a", "y"}
    assert suspects(found, 1e9) == frozenset()
