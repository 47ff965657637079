"""Small models, and a scan of what a test makes of them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from service.wire.file import scan_file
from service.wire.types import ModelScan

Scan = Callable[..., ModelScan]


@pytest.fixture
def model() -> onnx.ModelProto:
    """y = Relu(x @ w), with w in raw_data."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], bytes(32), raw=True)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"], "mm"), helper.make_node("Relu", ["h"], ["y"], "act")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [weight],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    """Scan a model, or bytes."""

    def scan_it(model: onnx.ModelProto | bytes, external: Mapping[str, int] | None = None) -> ModelScan:
        path = tmp_path / "model.onnx"
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        return scan_file(path, external)

    return scan_it
