"""The ONNX operator tests: a graph of a node or a few, with inputs, for each operator at each opset."""

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto, TypeProto, numpy_helper

from benchmarks.peers.wheels import unpacked

# Later wheels come without the test data.
REQUIREMENT = "onnx==1.21.0"

_DATA = Path("onnx", "backend", "test", "data")
_INPUTS = "test_data_set_0"


def operator_tests(cache: Path, pattern: str) -> dict[str, Path]:
    """Name -> folder of each test that has inputs and whose name matches the pattern. Raises WheelMissing."""
    folders = sorted((unpacked(REQUIREMENT, cache) / _DATA).glob("*/*"))
    named = {f"{folder.parent.name}/{folder.name}": folder for folder in folders if (folder / _INPUTS).is_dir()}
    return {
        name: folder for name, folder in named.items() if fnmatch(folder.name, pattern) and _model(folder).is_file()
    }


def load_test(folder: Path) -> tuple[Path, ModelProto, dict[str, Any]]:
    """The test's model file, the model, and a value for each input that the test gives one."""
    model = onnx.load(_model(folder))
    return _model(folder), model, dict(_feeds(model, folder / _INPUTS))


def takes_floats(model: ModelProto) -> bool:
    """Whether there is an FP32 input, in a sequence or optional too: what a converter has something to do with."""
    return any(_holds_floats(value.type) for value in model.graph.input)


def _model(folder: Path) -> Path:
    return folder / "model.onnx"


def _feeds(model: ModelProto, folder: Path) -> Iterator[tuple[str, Any]]:
    for position, value in enumerate(model.graph.input):
        file = folder / f"input_{position}.pb"
        if file.is_file():
            yield value.name, _value(file.read_bytes(), value.type)


def _value(data: bytes, value_type: TypeProto) -> Any:
    match value_type.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        case "optional_type":
            return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
        case _:
            return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _holds_floats(value_type: TypeProto) -> bool:
    match value_type.WhichOneof("value"):
        case "tensor_type":
            return value_type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        case "sequence_type" | "optional_type" as kind:
            return _holds_floats(getattr(value_type, kind).elem_type)
        case _:
            return False
