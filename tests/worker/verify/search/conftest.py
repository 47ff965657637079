"""Models whose islands are known, converted by search."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.worker.precision.planned import parse, with_weights
from worker.precision.report import AutoReport
from worker.types import ConvertRequest
from worker.verify.search.search import search

NORM = (
    "{0}_s = Pow({0}, two) {0}_m = ReduceMean({0}_s, last) {0}_e = Add({0}_m, eps) {0}_r = Sqrt({0}_e) "
    "{0}_n = Div({0}, {0}_r)"
)
BOMB = f"""
g (float[1,8,64] x) => (float[] y)
<float two = {{2}}, float eps = {{1e-6}}, int64[1] last = {{-1}}, float hot = {{1000}}>
{{
    cool = MatMul(x, w)
    {NORM.format("cool")}
    a = MatMul(cool_n, w)
    boiling = Mul(a, hot)
    {NORM.format("boiling")}
    b = MatMul(boiling_n, w)
    warm = Add(b, x)
    {NORM.format("warm")}
    y = MatMul(warm_n, w)
}}
"""
"""RMSNorms of three values; only the squares of one pass FP16's range."""

Write = Callable[..., Path]
Search = Callable[..., AutoReport]


@pytest.fixture
def write_model(tmp_path: Path) -> Write:
    """Writes a model given as ONNX text, with random square weights of these names."""

    def write(text: str, weights: tuple[str, ...] = ("w",), width: int = 64) -> Path:
        path = tmp_path / "model.onnx"
        model = parse(text, opset=20, ir_version=9)
        onnx.save(with_weights(model, dict.fromkeys(weights, (width, width))), path)
        return path

    return write


@pytest.fixture
def find() -> Search:
    """The report of a search."""

    def run(source: Path, **options: Any) -> AutoReport:
        return search(ConvertRequest(source, source.with_name("out.onnx"), mode="auto", **options))[1]

    return run
