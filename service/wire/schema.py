"""The part of onnx.proto that a scan follows: field numbers, wire types, and which fields may be repeated.

Fields that are not listed are skipped unread, except in the outermost message, where they are bytes that do not belong
to the model.
"""

from dataclasses import dataclass
from typing import NamedTuple

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIRE = {"varint": VARINT, "fixed64": FIXED64, "bytes": LENGTH, "fixed32": FIXED32}


class Field(NamedTuple):
    """`once` is a bit for a field, or for a oneof, that may appear once; 0 if it is repeated."""

    name: str
    wire: int
    once: int
    packable: bool


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    fields: dict[int, Field]
    closed: bool = False


def _message(name: str, table: str, *, closed: bool = False) -> Message:
    """A line a field: number, name, kind; a kind with `*` is repeated, and `|` joins the members of a oneof."""
    fields: dict[int, Field] = {}
    for bit, line in enumerate(filter(None, map(str.strip, table.splitlines()))):
        for number, field, kind in zip(*(column.split("|") for column in line.split()), strict=True):
            many = kind.endswith("*")
            wire = _WIRE[kind.rstrip("*")]
            fields[int(number)] = Field(field, wire, 0 if many else 1 << bit, many and wire != LENGTH)
    return Message(name, fields, closed)


MODEL = _message(
    "ModelProto",
    """
    1 ir_version varint
    2 producer_name bytes
    3 producer_version bytes
    4 domain bytes
    5 model_version varint
    6 doc_string bytes
    7 graph bytes
    8 opset_import bytes*
    14 metadata_props bytes*
    20 training_info bytes*
    25 functions bytes*
    26 configuration bytes*
    """,
    closed=True,
)
OPSET = _message("OperatorSetIdProto", "1 domain bytes \n 2 version varint")
GRAPH = _message(
    "GraphProto",
    """
    1 node bytes*
    2 name bytes
    5 initializer bytes*
    10 doc_string bytes
    11 input bytes*
    12 output bytes*
    13 value_info bytes*
    15 sparse_initializer bytes*
    """,
)
FUNCTION = _message(
    "FunctionProto",
    """
    1 name bytes
    4 input bytes*
    5 output bytes*
    6 attribute bytes*
    7 node bytes*
    8 doc_string bytes
    9 opset_import bytes*
    10 domain bytes
    11 attribute_proto bytes*
    12 value_info bytes*
    13 overload bytes
    """,
)
NODE = _message(
    "NodeProto",
    """
    1 input bytes*
    2 output bytes*
    3 name bytes
    4 op_type bytes
    5 attribute bytes*
    6 doc_string bytes
    7 domain bytes
    8 overload bytes
    """,
)
ATTRIBUTE = _message(
    "AttributeProto",
    """
    1 name bytes
    2 f fixed32
    3 i varint
    4 s bytes
    5 t bytes
    6 g bytes
    7 floats fixed32*
    8 ints varint*
    9 strings bytes*
    10 tensors bytes*
    11 graphs bytes*
    13 doc_string bytes
    14 tp bytes
    15 type_protos bytes*
    20 type varint
    21 ref_attr_name bytes
    22 sparse_tensor bytes
    23 sparse_tensors bytes*
    """,
)
TENSOR = _message(
    "TensorProto",
    """
    1 dims varint*
    2 data_type varint
    3 segment bytes
    4 float_data fixed32*
    5 int32_data varint*
    6 string_data bytes*
    7 int64_data varint*
    8 name bytes
    9 raw_data bytes
    10 double_data fixed64*
    11 uint64_data varint*
    12 doc_string bytes
    13 external_data bytes*
    14 data_location varint
    """,
)
SPARSE_TENSOR = _message("SparseTensorProto", "1 values bytes \n 2 indices bytes \n 3 dims varint*")
ENTRY = _message("StringStringEntryProto", "1 key bytes \n 2 value bytes")
VALUE_INFO = _message("ValueInfoProto", "1 name bytes \n 2 type bytes \n 3 doc_string bytes")
TYPE = _message(
    "TypeProto",
    """
    1|4|5|7|8|9 tensor|sequence|map|opaque|sparse_tensor|optional bytes|bytes|bytes|bytes|bytes|bytes
    6 denotation bytes
    """,
)
TENSOR_TYPE = _message("TypeProto.Tensor", "1 elem_type varint \n 2 shape bytes")
SHAPE = _message("TensorShapeProto", "1 dim bytes*")
DIM = _message("TensorShapeProto.Dimension", "1|2 dim_value|dim_param varint|bytes \n 3 denotation bytes")


class Dtype(NamedTuple):
    """`bits` an element; `typed` is the field that holds elements outside raw_data, `per_entry` of them in each."""

    name: str
    bits: int
    typed: str
    per_entry: int = 1


DTYPES: dict[int, Dtype] = {
    1: Dtype("float", 32, "float_data"),
    2: Dtype("uint8", 8, "int32_data"),
    3: Dtype("int8", 8, "int32_data"),
    4: Dtype("uint16", 16, "int32_data"),
    5: Dtype("int16", 16, "int32_data"),
    6: Dtype("int32", 32, "int32_data"),
    7: Dtype("int64", 64, "int64_data"),
    9: Dtype("bool", 8, "int32_data"),
    10: Dtype("float16", 16, "int32_data"),
    11: Dtype("double", 64, "double_data"),
    12: Dtype("uint32", 32, "uint64_data"),
    13: Dtype("uint64", 64, "uint64_data"),
    16: Dtype("bfloat16", 16, "int32_data"),
    17: Dtype("float8e4m3fn", 8, "int32_data"),
    18: Dtype("float8e4m3fnuz", 8, "int32_data"),
    19: Dtype("float8e5m2", 8, "int32_data"),
    20: Dtype("float8e5m2fnuz", 8, "int32_data"),
    21: Dtype("uint4", 4, "int32_data", 2),
    22: Dtype("int4", 4, "int32_data", 2),
    23: Dtype("float4e2m1", 4, "int32_data", 2),
    24: Dtype("float8e8m0", 8, "int32_data"),
    25: Dtype("uint2", 2, "int32_data", 4),
    26: Dtype("int2", 2, "int32_data", 4),
    27: Dtype("float6e2m3", 6, "int32_data"),
    28: Dtype("float6e3m2", 6, "int32_data"),
}
REFUSED_DTYPES = {8: "string", 14: "complex64", 15: "complex128"}
"""ONNX knows them; TensorRT has no such tensors."""
