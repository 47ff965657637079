"""What a scan tells of a sound model."""

import onnx
import pytest
from onnx import TensorProto, helper

from service.wire.types import Dim, TensorInfo


def test_a_scan_tells_what_the_model_has(model, scan) -> None:
    found = scan(model)
    assert (found.ir_version, found.opsets, found.nodes) == (10, {"ai.onnx": 20}, 2)
    assert found.inputs == (TensorInfo(name="x", dtype="float", shape=("N", 4)),)
    assert found.outputs == (TensorInfo(name="y", dtype="float", shape=("N", 2)),)
    assert found.op_counts == {"MatMul": 1, "Relu": 1}
    assert (found.parameters, found.weight_bytes, found.dtypes) == (8, 32, {"float": 1})
    assert (found.external, found.warnings) == ((), ())


def test_an_initializer_is_no_input(model, scan) -> None:
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 2]))
    assert [item.name for item in scan(model).inputs] == ["x"]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [(3, 3), ("N", "N"), (0, None), (-1, None), ("", None), ("?", None), ("unk__7", "unk__7"), (None, None)],
)
def test_placeholders_for_an_unknown_size_are_unknown(model, scan, declared: Dim, expected: Dim) -> None:
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [declared, 4]))
    assert scan(model).inputs[0].shape == (expected, 4)


def test_an_input_without_shape_has_unknown_rank(model, scan) -> None:
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert scan(model).inputs[0] == TensorInfo(name="x", dtype="float", shape=None)


def test_nodes_in_subgraphs_and_functions_count(model, scan) -> None:
    branch = helper.make_graph([helper.make_node("Neg", ["h"], ["b"])], "branch", [], [])
    model.graph.node.append(helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    model.functions.append(
        helper.make_function(
            "my", "F", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])], [helper.make_opsetid("", 20)]
        )
    )
    model.graph.node.append(helper.make_node("F", ["h"], ["f"], domain="my"))
    found = scan(model)
    assert found.op_counts == {"Neg": 2, "MatMul": 1, "Relu": 1, "If": 1, "my::F": 1, "Abs": 1}
    assert found.nodes == 7
    assert found.warnings == ("nodes use domain 'my', of which no opset is imported",)


@pytest.mark.parametrize("dtype", [item for item in TensorProto.DataType.values() if item not in (0, 8, 14, 15)])
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("elements", [0, 1, 5, 64])
def test_weights_of_every_type_are_measured(model, scan, dtype: int, raw: bool, elements: int) -> None:
    tensor = helper.make_tensor("w2", dtype, [elements], [1] * elements)
    if raw:
        size = (elements * (tensor_bits := _bits(dtype)) + 7) // 8
        assert tensor_bits
        tensor = TensorProto(name="w2", data_type=dtype, dims=[elements], raw_data=bytes(size))
    model.graph.initializer.append(tensor)
    found = scan(model)
    assert found.parameters == 8 + elements
    assert found.weight_bytes == 32 + (elements * _bits(dtype) + 7) // 8


def _bits(dtype: int) -> int:
    packed = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2, 27: 6, 28: 6}
    return packed.get(dtype) or helper.tensor_dtype_to_np_dtype(dtype).itemsize * 8


def test_numbers_that_are_not_packed_count_as_well(model, scan) -> None:
    weight = model.graph.initializer.pop()
    weight.ClearField("raw_data")
    typed = weight.SerializeToString() + b"\x25\x00\x00\x80\x3f" * 8
    graph = model.graph.SerializeToString() + b"\x2a" + _varint(len(typed)) + typed
    model.ClearField("graph")
    assert scan(model.SerializeToString() + b"\x3a" + _varint(len(graph)) + graph).parameters == 8


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _varint(value >> 7)


def test_external_data_is_listed_and_overlaps_count_once(model, scan) -> None:
    for name, offset in (("a", 0), ("b", 16), ("c", 16), ("d", 100)):
        model.graph.initializer.append(external(name, [8], location="dir/w.bin", offset=str(offset), length="32"))
    found = scan(model, {"dir/w.bin": 132})
    assert [(item.tensor, item.location, item.offset, item.nbytes) for item in found.external][:2] == [
        ("a", "dir/w.bin", 0, 32),
        ("b", "dir/w.bin", 16, 32),
    ]
    assert found.weight_bytes == 32 + 48 + 32
    assert found.parameters == 8 + 32


def external(name: str, dims: list[int], **entries: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def test_names_are_shown_whatever_their_bytes_are(model, scan) -> None:
    data = model.SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff")
    assert scan(data).inputs[0].name == "�"


@pytest.mark.parametrize("name", ["\0", "a\nb", "\x1b[31m", "\u202etxt", "<script>", "../x"])
def test_strange_names_are_kept(model, scan, name: str) -> None:
    model.graph.input[0].name = name
    assert scan(model).inputs[0].name == name


def test_a_sequence_input_has_no_shape(model, scan) -> None:
    model.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    assert scan(model).inputs[1] == TensorInfo(name="s", dtype="sequence", shape=None)


def test_sparse_weights_are_counted(model, scan) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    indices = helper.make_tensor("", TensorProto.INT64, [3], [1, 2, 3])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [10]))
    assert scan(model).weight_bytes == 32 + 12 + 24


def test_thirty_three_nested_graphs_are_accepted(model, scan) -> None:
    model.graph.node.append(nested_ifs(32))
    assert scan(model).op_counts["If"] == 32


def nested_ifs(levels: int) -> onnx.NodeProto:
    node = helper.make_node("If", ["c"], ["z"])
    for _ in range(levels - 1):
        node = helper.make_node("If", ["c"], ["z"], then_branch=helper.make_graph([node], "", [], []))
    node.attribute.append(helper.make_attribute("else_branch", helper.make_graph([], "", [], [])))
    return node
