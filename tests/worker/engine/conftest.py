"""Models as ONNX text, saved where the builder's child can read them."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

ATTENTION = """
    <ir_version: 10, opset_import: ["": 17]>
    attention ({dtype}[1,8,{length},64] q, {dtype}[1,8,64,{length}] k, {dtype}[1,8,{length},64] v)
        => ({dtype}[1,8,{length},64] y)
    {{
        scores = MatMul(q, k)
        probabilities = Softmax<axis = -1>(scores)
        y = MatMul(probabilities, v)
    }}
"""

SaveModel = Callable[[str], Path]
SaveAttention = Callable[..., Path]


@pytest.fixture
def save_model(tmp_path: Path) -> SaveModel:
    """Writes a model given as ONNX text; a node is named like `matmul_0`."""

    def save(text: str) -> Path:
        model = onnx.parser.parse_model(text)
        for index, node in enumerate(model.graph.node):
            node.name = f"{node.op_type.lower()}_{index}"
        path = tmp_path / f"{model.graph.name}.onnx"
        onnx.save(model, path)
        return path

    return save


@pytest.fixture
def save_attention(save_model: SaveModel) -> SaveAttention:
    """One attention core of a dtype; a length that is a name makes it dynamic."""

    def save(dtype: str = "float16", length: int | str = 256) -> Path:
        return save_model(ATTENTION.format(dtype=dtype, length=length))

    return save
