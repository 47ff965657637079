"""Models as files whose tensors are stored in every way that protobuf and ONNX allow."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

WriteModel = Callable[[onnx.ModelProto], Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteModel:
    def write_model(model: onnx.ModelProto) -> Path:
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    return write_model
