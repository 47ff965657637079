"""Opening a file without reading its weights, however they are spelled."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.errors import NotOnnx
from tests.worker.graph.models import VALUES, model_with, raw, unpacked
from worker.graph.skeleton import PAYLOAD_KEY, length_prefixed, open_skeleton

Write = Callable[[onnx.ModelProto], Path]


def as_float_data() -> TensorProto:
    return helper.make_tensor("w", TensorProto.FLOAT, VALUES.shape, VALUES.ravel())


def with_explicit_default_location() -> TensorProto:
    tensor = raw()
    tensor.data_location = TensorProto.DEFAULT
    return tensor


@pytest.mark.parametrize(
    "tensor", [raw(), as_float_data(), with_explicit_default_location()], ids=["raw", "float_data", "default location"]
)
def test_a_large_tensor_is_left_in_the_file(write: Write, tensor: TensorProto) -> None:
    path = write(model_with(tensor))
    skeleton = open_skeleton(path)
    weight = skeleton.model.graph.initializer[0]
    payload = skeleton.payload(weight)
    assert payload is not None
    assert skeleton.model.ByteSize() < 500 < path.stat().st_size
    np.testing.assert_array_equal(np.frombuffer(payload.read(), "<f4").reshape(VALUES.shape), VALUES)
    assert (weight.name, list(weight.dims), weight.data_type) == ("w", [32, 32], TensorProto.FLOAT)


def test_a_small_tensor_stays_in_the_skeleton(write: Write) -> None:
    small = numpy_helper.from_array(np.arange(8, dtype=np.float32), "small")
    skeleton = open_skeleton(write(model_with(raw(), small)))
    assert skeleton.payload(skeleton.model.graph.initializer[1]) is None
    np.testing.assert_array_equal(numpy_helper.to_array(skeleton.model.graph.initializer[1]), np.arange(8))


def test_the_tensor_of_a_constant_in_a_subgraph_is_left_in_the_file(write: Write) -> None:
    body = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=raw("c"))],
        "body",
        [],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [32, 32])],
    )
    model = model_with(raw())
    model.graph.node.append(helper.make_node("If", ["x"], ["z"], then_branch=body, else_branch=body))
    assert len(open_skeleton(write(model)).payloads) == 3


def file_with_tensor(path: Path, body: bytes) -> Path:
    """A model whose only initializer has these bytes, in this order."""
    graph = length_prefixed(5, len(body)) + body
    path.write_bytes(b"\x08\x08" + length_prefixed(7, len(graph)) + graph)
    return path


HEAD = b"\x08\x20\x08\x20\x10\x01"  # dims 32, 32; data_type float
NAME = b"\x42\x01w"
DATA = length_prefixed(9, VALUES.nbytes) + VALUES.tobytes()
UNKNOWN = b"\xfa\x3e\x03abc"  # field 1007

ORDERS = {
    "data first": DATA + NAME + HEAD,
    "data in the middle": HEAD + DATA + NAME,
    "location before data": b"\x70\x00" + DATA + HEAD + NAME,
    "unknown fields around": UNKNOWN + HEAD + DATA + UNKNOWN + NAME,
}


@pytest.mark.parametrize("body", ORDERS.values(), ids=ORDERS)
def test_fields_may_come_in_any_order(tmp_path: Path, body: bytes) -> None:
    skeleton = open_skeleton(file_with_tensor(tmp_path / "m.onnx", body))
    weight = skeleton.model.graph.initializer[0]
    payload = skeleton.payload(weight)
    assert payload is not None
    assert payload.read() == VALUES.tobytes()
    assert (weight.name, list(weight.dims)) == ("w", [32, 32])


def test_floats_that_are_not_packed_are_read_one_by_one(tmp_path: Path) -> None:
    skeleton = open_skeleton(file_with_tensor(tmp_path / "m.onnx", HEAD + NAME + unpacked(4, VALUES)))
    weight = skeleton.model.graph.initializer[0]
    assert skeleton.payload(weight) is None
    np.testing.assert_array_equal(numpy_helper.to_array(weight), VALUES)


def test_a_location_in_an_upload_cannot_pass_for_a_payload() -> None:
    assert len(PAYLOAD_KEY) > len("payload::") + 8


BROKEN = {
    "empty": b"",
    "text": b"this is not a model, but it is long enough to be looked at",
    "cut off": None,
    "a length beyond the end": b"\x3a\xff\xff\xff\xff\x0f",
    "a varint without end": b"\x08" + b"\xff" * 20,
    "no graph": b"\x08\x08",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_what_is_no_model_is_refused_by_name(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(model_with(raw()).SerializeToString()[:-100] if data is None else data)
    with pytest.raises(NotOnnx, match=r"broken\.onnx"):
        open_skeleton(path)
