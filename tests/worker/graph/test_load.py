"""What a model looks like once it is ready for analysis, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.errors import (
    ExternalDataInvalid,
    ExternalDataMissing,
    ExternalDataPath,
    ExternalDataRange,
    InvalidGraph,
    ProblemError,
    TensorSizeMismatch,
    UnsupportedDtype,
    UnsupportedOpset,
)
from tests.worker.graph.models import VALUES, model_with, raw
from worker.graph.load import load

Write = Callable[[onnx.ModelProto], Path]


def external(location: str, **entries: object) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=VALUES.shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"\0" * 64 + VALUES.tobytes())
    return path


def test_external_data_is_referenced_where_it_lies(write: Write, data_file: Path) -> None:
    skeleton = load(write(model_with(external("weights.bin", offset=64, length=VALUES.nbytes))))
    payload = skeleton.payload(skeleton.model.graph.initializer[0])
    assert payload is not None
    assert (payload.path, payload.offset, payload.read()) == (data_file, 64, VALUES.tobytes())


def test_external_data_without_a_length_is_as_long_as_its_tensor(write: Write, data_file: Path) -> None:
    skeleton = load(write(model_with(external("weights.bin", offset=64))))
    payload = skeleton.payload(skeleton.model.graph.initializer[0])
    assert payload is not None
    assert payload.length == VALUES.nbytes


BAD_REFERENCES: dict[str, tuple[TensorProto, type[ProblemError]]] = {
    "absolute": (external("/etc/passwd"), ExternalDataPath),
    "up": (external("../weights.bin"), ExternalDataPath),
    "up in the middle": (external("a/../../weights.bin"), ExternalDataPath),
    "empty": (external(""), ExternalDataPath),
    "backslash": (external("a\\b"), ExternalDataPath),
    "null": (external("a\0b"), ExternalDataPath),
    "a link out of the folder": (external("link.bin"), ExternalDataPath),
    "missing": (external("none.bin"), ExternalDataMissing),
    "past the end": (external("weights.bin", offset=65), ExternalDataRange),
    "negative offset": (external("weights.bin", offset=-1), ExternalDataRange),
    "too short": (external("weights.bin", length=8), ExternalDataRange),
    "no number": (external("weights.bin", offset="x"), ExternalDataInvalid),
}


@pytest.mark.parametrize(("tensor", "error"), BAD_REFERENCES.values(), ids=BAD_REFERENCES)
def test_external_data_is_confined_to_the_folder(
    write: Write, data_file: Path, tmp_path: Path, tensor: TensorProto, error: type[ProblemError]
) -> None:
    (tmp_path / "link.bin").symlink_to("/etc/hostname")
    with pytest.raises(error, match="'w'"):
        load(write(model_with(tensor)))


def wrong_size() -> TensorProto:
    tensor = raw()
    tensor.raw_data = tensor.raw_data[:-4]
    return tensor


def with_dims(*dims: int) -> TensorProto:
    tensor = raw()
    tensor.dims[:] = dims
    return tensor


def with_dtype(dtype: int) -> TensorProto:
    tensor = raw()
    tensor.data_type = dtype
    return tensor


@pytest.mark.parametrize(
    ("tensor", "error"),
    [(wrong_size(), TensorSizeMismatch), (with_dims(-1, 32), TensorSizeMismatch), (with_dtype(99), UnsupportedDtype)],
    ids=["size", "negative dimension", "dtype"],
)
def test_a_tensor_that_lies_is_refused_by_name(write: Write, tensor: TensorProto, error: type[ProblemError]) -> None:
    with pytest.raises(error, match="'w'"):
        load(write(model_with(tensor)))


@pytest.mark.parametrize("version", [0, 9999])
def test_an_opset_that_nobody_knows_is_refused(write: Write, version: int) -> None:
    model = model_with(raw())
    model.opset_import[0].version = version
    with pytest.raises(UnsupportedOpset, match=str(version)):
        load(write(model))


def test_onnx_operators_without_their_opset_are_refused(write: Write) -> None:
    model = model_with(raw())
    del model.opset_import[:]
    with pytest.raises(UnsupportedOpset, match="imports no"):
        load(write(model))


def test_a_cycle_is_refused_by_node(write: Write) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
        "{ [first] a = Add(x, b) [second] b = Neg(a) y = Neg(a) }"
    )
    with pytest.raises(InvalidGraph, match="first"):
        load(write(model))


def test_a_name_made_twice_is_refused(write: Write) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Neg(x) y = Abs(x) }'
    )
    with pytest.raises(InvalidGraph, match="'y' is made twice"):
        load(write(model))


def test_nodes_are_sorted_and_a_sorted_graph_stays_as_it_is(write: Write) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
        "{ y = Add(b, a) b = Neg(a) c = Abs(x) a = Relu(x) }"
    )
    order = [node.output[0] for node in load(write(onnx.parser.parse_model(text))).model.graph.node]
    assert order == ["c", "a", "b", "y"]


def test_local_functions_are_inlined(write: Write) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[2] x) => (float[2] y) { y = local.twice(x) } '
        '<domain: "local", opset_import: ["": 17]> twice (a) => (b) { b = Add(a, a) }'
    )
    model = load(write(onnx.parser.parse_model(text))).model
    assert [node.op_type for node in model.graph.node] == ["Add"]
    assert not model.functions


def test_before_ir_4_an_initializer_that_is_an_input_is_a_constant(write: Write) -> None:
    model = model_with(raw())
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, VALUES.shape))
    loaded = load(write(model)).model
    assert [value.name for value in loaded.graph.input] == ["x"]
    assert loaded.ir_version == 4


def test_from_ir_4_on_it_is_a_default_that_callers_may_override(write: Write) -> None:
    model = model_with(raw())
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, VALUES.shape))
    assert [value.name for value in load(write(model)).model.graph.input] == ["x", "w"]


def test_branches_that_use_the_same_name_get_names_of_their_own(write: Write) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) { y = If (c) <'
        "then_branch = t () => (float[2] r) { a = Neg(x) r = Abs(a) }, "
        "else_branch = e () => (float[2] r) { a = Abs(x) r = Neg(a) }> }"
    )
    (node,) = load(write(onnx.parser.parse_model(text))).model.graph.node
    bodies = {attribute.name: attribute.g for attribute in node.attribute}
    made = [inner.output[0] for body in bodies.values() for inner in body.node]
    assert len(made) == len(set(made)) == 4
    assert [body.output[0].name for body in bodies.values()] == [body.node[1].output[0] for body in bodies.values()]


CONSTANTS = {
    "value_float": ("<value_float = 2.5>", np.float32(2.5)),
    "value_floats": ("<value_floats = [1.0, 2.0]>", np.array([1, 2], np.float32)),
    "value_int": ("<value_int = 7>", np.int64(7)),
    "value_ints": ("<value_ints = [7, 8]>", np.array([7, 8])),
    "value_string": ('<value_string = "a">', np.array("a", object)),
}


@pytest.mark.parametrize(("spelling", "value"), CONSTANTS.values(), ids=CONSTANTS)
def test_constants_have_one_form(write: Write, spelling: str, value: np.ndarray) -> None:
    nodes = f"{{ c = Constant {spelling} () y = Neg(x) }}"
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {nodes}'
    node = load(write(onnx.parser.parse_model(text))).model.graph.node[0]
    assert node.attribute[0].name == "value"
    np.testing.assert_array_equal(numpy_helper.to_array(node.attribute[0].t), value)
