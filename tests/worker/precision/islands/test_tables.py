"""Rotary embeddings whose cosines and sines are constants."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from worker.precision.convert import convert
from worker.types import ConvertRequest

HEAD = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,16,8] x, int64[16] positions) => (float[1,16,8] y) {
  q = MatMul(x, w)
  c = Gather(cosines, positions)
  s = Gather(sines, positions)
  halves, rest = Split<axis = -1>(q)
  minus = Neg(rest)
  turned = Concat<axis = -1>(minus, halves)
"""
ROTATED = "  a = Mul(q, c) b = Mul(s, turned) r = Add(a, b) y = MatMul(r, w) }"
MINUS = "  a = Mul(c, q) b = Mul(turned, s) r = Sub(a, b) y = MatMul(r, w) }"

angles = np.outer(np.arange(32), 10_000.0 ** -np.linspace(0, 1, 8))
UNIT = {"cosines": np.cos(angles), "sines": np.sin(angles)}
OTHERS = {"cosines": np.full((32, 8), 0.5), "sines": np.full((32, 8), 0.25)}


@pytest.mark.parametrize(
    ("tail", "tables", "mode", "rotated"),
    [
        (ROTATED, UNIT, "rope", {"Mul:a", "Mul:b", "Add:r"}),
        (MINUS, UNIT, "rope", {"Mul:a", "Mul:b", "Sub:r"}),
        (ROTATED, OTHERS, "rope", set()),
        (ROTATED, UNIT, "minimal", set()),
    ],
    ids=["a sum", "a difference", "tables that are no cosines and sines", "minimal leaves rotations alone"],
)
def test_rotation_by_tables(
    tmp_path: Path, tail: str, tables: dict[str, np.ndarray], mode: str, rotated: set[str]
) -> None:
    model = onnx.parser.parse_model(HEAD + tail)
    weight = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    for name, values in {"w": weight, **tables}.items():
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    source = tmp_path / "in.onnx"
    onnx.save(model, source)
    report = convert(ConvertRequest(source, tmp_path / "out.onnx", mode=mode))
    assert {node for island in report.islands if island.family == "rotation" for node in island.nodes} == rotated
