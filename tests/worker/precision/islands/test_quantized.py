"""Quantised parts keep the pattern that TensorRT looks for."""

from pathlib import Path

import onnx
import onnx.parser

from worker.precision.convert import convert
from worker.types import ConvertRequest

ONES, HALVES = ", ".join(["1"] * 64), ", ".join(["0.5"] * 64)
GRAPH = f"""
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[1, 8] x) => (float[1, 8] y)
<float one = {{0.1}}, int8 zero = {{0}}, int8[8, 8] w = {{{ONES}}}, float[8, 8] v = {{{HALVES}}}>
{{
  q = QuantizeLinear(x, one, zero)
  dq = DequantizeLinear(q, one, zero)
  wf = DequantizeLinear(w, one, zero)
  wt = Transpose(wf)
  m = MatMul(dq, wt)
  q2 = QuantizeLinear(m, one, zero)
  dq2 = DequantizeLinear(q2, one, zero)
  t = Relu(dq2)
  n = MatMul(t, v)
  y = MatMul(n, v)
}}
"""


def test_no_cast_comes_between_dequantize_and_its_readers(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(GRAPH), source)
    report = convert(ConvertRequest(source, target))
    graph = onnx.load(target).graph
    makers = {name: node.op_type for node in graph.node for name in node.output}
    product = next(node for node in graph.node if node.output[0] == "m")
    assert [makers[name] for name in product.input] == ["DequantizeLinear", "Transpose"]
    assert {node for island in report.islands if island.family == "quantized" for node in island.nodes} >= {"MatMul:m"}
    assert report.counts.half_tensors > 0
