"""Weights in typed fields, whole or in parts, are the weights that every reader of ONNX sees."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.worker.graph.models import VALUES, unpacked
from worker.graph.load import load
from worker.graph.save import Output, save
from worker.graph.skeleton import length_prefixed

HALVES = VALUES.astype(np.float16)


def float_head() -> bytes:
    return TensorProto(name="w", dims=VALUES.shape, data_type=TensorProto.FLOAT).SerializeToString()


def in_parts(field: int, data: bytes, *cuts: int) -> bytes:
    """One packed field as several records."""
    edges = [0, *cuts, len(data)]
    parts = [data[start:stop] for start, stop in pairwise(edges)]
    return b"".join(length_prefixed(field, len(part)) + part for part in parts)


def tensor(data_type: int, values: np.ndarray) -> bytes:
    return helper.make_tensor("w", data_type, values.shape, values.ravel()).SerializeToString()


FLOAT_BYTES = VALUES.tobytes()
SPELLINGS: dict[str, tuple[bytes, np.ndarray]] = {
    "packed": (float_head() + in_parts(4, FLOAT_BYTES), VALUES),
    "packed in two large parts": (float_head() + in_parts(4, FLOAT_BYTES, 2048), VALUES),
    "packed with a small last part": (float_head() + in_parts(4, FLOAT_BYTES, 4000), VALUES),
    "packed, then one by one": (
        float_head() + in_parts(4, FLOAT_BYTES[:3200]) + unpacked(4, VALUES.ravel()[800:]),
        VALUES,
    ),
    "one by one": (float_head() + unpacked(4, VALUES), VALUES),
    "FP16 in int32_data": (tensor(TensorProto.FLOAT16, HALVES), HALVES),
    "doubles": (tensor(TensorProto.DOUBLE, VALUES.astype(np.float64)), VALUES.astype(np.float64)),
    "int64": (tensor(TensorProto.INT64, np.arange(900)), np.arange(900)),
    "uint64": (tensor(TensorProto.UINT64, np.arange(900, dtype=np.uint64)), np.arange(900, dtype=np.uint64)),
    "bools": (tensor(TensorProto.BOOL, VALUES > 0), VALUES > 0),
}


def model_file(path: Path, body: bytes) -> Path:
    """A model whose only initializer has these bytes; `ParseFromString` never sees them."""
    opset = helper.make_opsetid("", 17).SerializeToString()
    graph = b"\x12\x01g" + length_prefixed(5, len(body)) + body
    path.write_bytes(b"\x08\x08" + length_prefixed(7, len(graph)) + graph + length_prefixed(8, len(opset)) + opset)
    return path


@pytest.mark.parametrize(("body", "values"), SPELLINGS.values(), ids=SPELLINGS)
def test_what_is_written_holds_what_was_spelled(tmp_path: Path, body: bytes, values: np.ndarray) -> None:
    save(Output(load(model_file(tmp_path / "in.onnx", body))), tmp_path / "out.onnx")
    (weight,) = onnx.load(tmp_path / "out.onnx").graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(weight), values)


@pytest.mark.parametrize("copies", [1, 2], ids=["one graph field", "two graph fields"])
def test_fields_that_come_twice_are_merged_as_protobuf_does(tmp_path: Path, copies: int) -> None:
    body = float_head() + in_parts(4, FLOAT_BYTES)
    path = model_file(tmp_path / "in.onnx", body)
    for number in range(1, copies):
        other = length_prefixed(5, len(body)) + body.replace(b"\x42\x01w", b"\x42\x01%d" % number)
        path.write_bytes(path.read_bytes() + length_prefixed(7, len(other)) + other)
    save(Output(load(path)), tmp_path / "out.onnx")
    weights = onnx.load(tmp_path / "out.onnx").graph.initializer
    assert [weight.name for weight in weights] == ["w", "1"][:copies]
    for weight in weights:
        np.testing.assert_array_equal(numpy_helper.to_array(weight), VALUES)
