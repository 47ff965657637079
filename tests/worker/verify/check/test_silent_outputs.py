"""Outputs that say nothing on generated inputs are not judged by their noise."""

from pathlib import Path

import onnx
import pytest

from worker.verify.check import verify
from worker.verify.types import VerifyRequest

GRAPH = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[1, 8] x) => (float[1, 8] y)
<float[8, 8] w = {%s}, float bias = {%s}>
{ logits = MatMul(x, w) shifted = Add(logits, bias) y = Sigmoid(shifted) }
"""


def write(path: Path, weight: str, bias: str) -> Path:
    onnx.save(onnx.parser.parse_model(GRAPH % (", ".join([weight] * 64), bias)), path)
    return path


@pytest.mark.parametrize(
    ("bias", "verdict"),
    [("-40.0", "not verified"), ("0.0", "failed")],
    ids=["every probability is all but zero", "probabilities that differ"],
)
def test_a_sigmoid_that_says_no_everywhere_proves_nothing(tmp_path: Path, bias: str, verdict: str) -> None:
    source, other = write(tmp_path / "a.onnx", "0.5", bias), write(tmp_path / "b.onnx", "-0.5", bias)
    assert verify(VerifyRequest(source, other)).verdict == verdict
