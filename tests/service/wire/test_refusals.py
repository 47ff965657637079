"""The bad-input matrix, as far as the bytes of the file tell."""

from collections.abc import Callable

import onnx
import pytest
from onnx import TensorProto, helper

from service.errors import (
    AmbiguousProtobuf,
    ExternalDataInvalid,
    ExternalDataMissing,
    ExternalDataPath,
    ExternalDataRange,
    InvalidGraph,
    InvalidModel,
    NameTooLong,
    NotOnnx,
    TensorSizeMismatch,
    TensorTooLarge,
    TooComplex,
    TooDeep,
    UnsupportedDtype,
    UnsupportedOpset,
)

Change = Callable[[onnx.ModelProto], object]
Entries = tuple[tuple[str, str], ...]

FILES: dict[str, tuple[bytes, type[InvalidModel], str]] = {
    "empty": (b"", NotOnnx, "empty"),
    "text": (b"dummy\n", NotOnnx, "Byte 0"),
    "longer text": (b"This is not a model at all.\n" * 50, NotOnnx, "not an ONNX model"),
    "zip": (b"PK\x03\x04" + bytes(100), NotOnnx, "Byte"),
    "html": (b"<!DOCTYPE html><html></html>", NotOnnx, "Byte"),
    "zeros": (bytes(1000), NotOnnx, "Byte 0"),
    "endless number": (b"\xff" * 20, NotOnnx, "no end"),
    "header only": (b"\x08\x0a", NotOnnx, "no graph in these 2 bytes"),
}


@pytest.mark.parametrize(("data", "error", "message"), FILES.values(), ids=FILES)
def test_what_is_no_model_is_refused(scan, data: bytes, error: type[InvalidModel], message: str) -> None:
    with pytest.raises(error, match=message):
        scan(data)


def test_a_model_cut_at_any_byte_is_refused_and_the_offset_told(model, scan) -> None:
    data = model.SerializeToString()
    for length in range(1, len(data)):
        with pytest.raises(NotOnnx) as caught:
            scan(data[:length])
        assert str(length) in caught.value.detail, caught.value.detail


def put(model: onnx.ModelProto, **fields: object) -> None:
    for name, value in fields.items():
        setattr(model, name, value)


def weigh(**fields: object) -> Change:
    def change(model: onnx.ModelProto) -> None:
        weight = model.graph.initializer[0]
        dims = fields.pop("dims", None)
        if dims is not None:
            weight.dims[:] = dims
        put(weight, **fields)

    return change


def nest(levels: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        graph = helper.make_graph([], "g", [], []).SerializeToString()
        for _ in range(levels):
            attribute = b"\x32" + varint(len(graph)) + graph
            node = b"\x2a" + varint(len(attribute)) + attribute
            graph = b"\x0a" + varint(len(node)) + node
        return model.SerializeToString() + b"\x3a" + varint(len(graph)) + graph

    def without_graph(model: onnx.ModelProto) -> bytes:
        model.ClearField("graph")
        return change(model)

    return without_graph


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def opset(version: int, domain: str = "") -> Change:
    return lambda model: model.opset_import[0].CopyFrom(helper.make_opsetid(domain, version))


MODELS: dict[str, tuple[Change, type[InvalidModel], str]] = {
    "two models joined": (lambda m: m.SerializeToString() * 2, AmbiguousProtobuf, "second time"),
    "trailing zeros": (lambda m: m.SerializeToString() + bytes(8), AmbiguousProtobuf, "begins no field"),
    "trailing field": (lambda m: m.SerializeToString() + b"\xfa\x07\x00", AmbiguousProtobuf, "do not belong"),
    "second graph": (lambda m: m.SerializeToString() + b"\x3a\x00", AmbiguousProtobuf, "graph"),
    "second ir_version": (lambda m: m.SerializeToString() + b"\x08\x08", AmbiguousProtobuf, "ir_version"),
    "wrong wire type": (
        lambda m: m.SerializeToString() + b"\x3d\x00\x00\x00\x00",
        NotOnnx,
        "ModelProto.graph is 4 bytes",
    ),
    "two opsets": (lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx", 9)), AmbiguousProtobuf, "20 and 9"),
    "34 nested graphs": (nest(33), TooDeep, "33 graphs"),
    "5000 nested graphs": (nest(5000), TooDeep, "33 graphs"),
    "no nodes": (lambda m: m.graph.ClearField("node"), NotOnnx, "no nodes"),
    "no graph": (lambda m: m.ClearField("graph"), NotOnnx, "no graph"),
    "no outputs": (lambda m: m.graph.ClearField("output"), InvalidGraph, "no outputs"),
    "twin inputs": (lambda m: m.graph.input.append(m.graph.input[0]), InvalidGraph, "inputs are named 'x'"),
    "no ir_version": (lambda m: m.ClearField("ir_version"), UnsupportedOpset, "no ir_version"),
    "ir_version 0": (lambda m: put(m, ir_version=0), UnsupportedOpset, "ir_version 0"),
    "ir_version 9999": (lambda m: put(m, ir_version=9999), UnsupportedOpset, "9999"),
    "opset 0": (opset(0), UnsupportedOpset, "version 0"),
    "opset -1": (opset(-1), UnsupportedOpset, "version -1"),
    "opset 9999": (opset(9999), UnsupportedOpset, "opset 9999"),
    "no ai.onnx opset": (opset(1, "com.microsoft"), UnsupportedOpset, "no opset"),
    "raw data short": (weigh(raw_data=bytes(31)), TensorSizeMismatch, "needs 32 bytes .* has 31"),
    "raw data long": (weigh(raw_data=bytes(33)), TensorSizeMismatch, "has 33"),
    "no data": (lambda m: m.graph.initializer[0].ClearField("raw_data"), TensorSizeMismatch, "8 elements .* 0 entries"),
    "raw and typed": (lambda m: m.graph.initializer[0].float_data.append(1), TensorSizeMismatch, "both"),
    "data of another type": (
        lambda m: (m.graph.initializer[0].ClearField("raw_data"), m.graph.initializer[0].int64_data.append(1)),
        TensorSizeMismatch,
        "data are in int64_data",
    ),
    "product wraps": (weigh(dims=[2**40, 2**40]), TensorTooLarge, str(2**40)),
    "negative dim": (weigh(dims=[-1, 2]), TensorTooLarge, "-1"),
    "many dims": (weigh(dims=[1] * 100), TensorTooLarge, "dimensions"),
    "dims whose product is huge": (weigh(dims=[2**31 - 1] * 60), TensorSizeMismatch, "needs"),
    "dtype 99": (weigh(data_type=99), UnsupportedDtype, "'w' has the unknown type 99"),
    "dtype undefined": (weigh(data_type=0), UnsupportedDtype, "unknown type 0"),
    "strings": (weigh(data_type=TensorProto.STRING), UnsupportedDtype, "string"),
    "complex input": (
        lambda m: put(m.graph.input[0].type.tensor_type, elem_type=TensorProto.COMPLEX64),
        UnsupportedDtype,
        "complex64",
    ),
    "input without type": (lambda m: m.graph.input[0].ClearField("type"), InvalidGraph, "'x' has no type"),
    "huge input": (
        lambda m: put(m.graph.input[0].type.tensor_type.shape.dim[0], dim_value=2**40),
        TensorTooLarge,
        "dimension 0",
    ),
    "long node name": (lambda m: put(m.graph.node[0], name="n" * 1025), NameTooLong, "1025 bytes"),
    "10 MB name": (lambda m: put(m.graph.node[0], op_type="n" * 10_000_000), NameTooLong, "10000000 bytes"),
    "long tensor name": (weigh(name="n" * 2000), NameTooLong, "2000"),
    "long input name": (lambda m: put(m.graph.input[0], name="é" * 600), NameTooLong, "1200"),
    "bad tensor in an attribute": (
        lambda m: m.graph.node.append(
            helper.make_node("Constant", [], ["k"], value=TensorProto(name="k", data_type=1, dims=[3]))
        ),
        TensorSizeMismatch,
        "'k'",
    ),
    "segments": (lambda m: put(m.graph.initializer[0].segment, begin=1), InvalidGraph, "segments"),
}


@pytest.mark.parametrize(("change", "error", "message"), MODELS.values(), ids=MODELS)
def test_a_model_that_is_not_right_is_refused(
    model, scan, change: Change, error: type[InvalidModel], message: str
) -> None:
    changed = change(model)
    with pytest.raises(InvalidModel, match=message) as caught:
        scan(changed if isinstance(changed, bytes) else model)
    assert type(caught.value) is error


EXTERNAL: dict[str, tuple[Entries, type[InvalidModel]]] = {
    **{
        f"location {location!r}": ((("location", location),), ExternalDataPath)
        for location in ("", ".", "..", "../w", "a/../w", "/etc/passwd", "a\\w", "C:w", "w\0", "a//w", "./w", "w/")
    },
    "not uploaded": ((("location", "other"),), ExternalDataMissing),
    "case twin": ((("location", "W"),), ExternalDataMissing),
    "no location": ((("offset", "0"),), ExternalDataInvalid),
    "two locations": ((("location", "w"), ("location", "w")), ExternalDataInvalid),
    "unknown key": ((("location", "w"), ("mode", "x")), ExternalDataInvalid),
    **{
        f"offset {offset!r}": ((("location", "w"), ("offset", offset)), ExternalDataRange)
        for offset in ("-1", "1e9", "", " 1", "+1", "0x1", "٣", "1", "64", str(2**63), "9" * 30)
    },
    "length short": ((("location", "w"), ("length", "16")), TensorSizeMismatch),
    "length long": ((("location", "w"), ("length", "220")), TensorSizeMismatch),
    "length negative": ((("location", "w"), ("length", "-1")), ExternalDataRange),
}


@pytest.mark.parametrize(("entries", "error"), EXTERNAL.values(), ids=EXTERNAL)
def test_external_data_that_cannot_be_true_is_refused(model, scan, entries: Entries, error: type[InvalidModel]) -> None:
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries:
        weight.external_data.add(key=key, value=value)
    with pytest.raises(InvalidModel) as caught:
        scan(model, {"w": 32})
    assert type(caught.value) is error, caught.value.detail


def test_all_missing_files_are_listed(model, scan) -> None:
    for name in ("a", "b"):
        tensor = model.graph.initializer.add(name=name, data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=f"{name}.bin")
    with pytest.raises(ExternalDataMissing) as caught:
        scan(model)
    assert caught.value.extensions == {"missing": ["a.bin", "b.bin"]}


def test_a_file_that_the_graph_does_not_use_is_refused(model, scan) -> None:
    with pytest.raises(ExternalDataInvalid, match=r"no file named 'extra\.bin'"):
        scan(model, {"extra.bin": 1})


def test_data_both_in_and_beside_the_graph_are_refused(model, scan) -> None:
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    model.graph.initializer[0].external_data.add(key="location", value="w")
    with pytest.raises(TensorSizeMismatch, match="in the graph and in an external file"):
        scan(model, {"w": 32})


def test_external_entries_without_external_location_are_refused(model, scan) -> None:
    model.graph.initializer[0].external_data.add(key="location", value="w")
    with pytest.raises(ExternalDataInvalid, match="says that its data are in the graph"):
        scan(model, {"w": 32})


@pytest.mark.slow
def test_a_million_empty_nodes_are_refused(model, scan) -> None:
    model.graph.node.extend([onnx.NodeProto()] * 1_000_000)
    with pytest.raises(TooComplex, match="1000000 nodes"):
        scan(model)
