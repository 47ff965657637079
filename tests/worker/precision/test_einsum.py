"""Attention that is spelled with Einsum, in a trunk whose dtype Einsum has no form for."""

from pathlib import Path

import onnx
import pytest

from worker.precision.convert import convert
from worker.types import ConvertRequest

ATTENTION = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[1,2,8,64] q, float[1,2,8,64] k, float[1,2,8,64] v) => (float[1,2,8,64] y)
    {
        s = Einsum<equation = "b h i d, b h j d -> b h i j">(q, k)
        p = Softmax<axis = -1>(s)
        y = Einsum<equation = "b h i j, b h j d -> b h i d">(p, v)
    }
"""


@pytest.mark.parametrize(
    ("trunk", "ops"),
    [("fp16", ["Einsum", "Softmax", "Einsum"]), ("bf16", ["Transpose", "MatMul", "Softmax", "MatMul"])],
)
def test_the_core_is_bounded_in_either_trunk(tmp_path: Path, trunk: str, ops: list[str]) -> None:
    source, target = tmp_path / "source.onnx", tmp_path / "target.onnx"
    onnx.save(onnx.parser.parse_model(ATTENTION), source)
    report = convert(ConvertRequest(source=source, target=target, trunk=trunk))
    assert [attention.bounded for attention in report.attentions] == [True]
    converted = onnx.load(target)
    assert [node.op_type for node in converted.graph.node if node.op_type != "Cast"] == ops
    told = [finding.where for finding in report.findings if finding.kind == "einsum written out"]
    assert told == (["s", "y"] if trunk == "bf16" else [])
