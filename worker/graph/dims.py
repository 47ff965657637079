"""Dimension names that are none: placeholders, which TensorRT would take for equal sizes.

Paddle and others write `?` (or nothing, 0 or -1) for every dimension that they do not know. Equal names mean equal
sizes, so a profile with height 48 and width 320 would be refused. Each placeholder of an input gets a name of its own;
those of outputs and inner values are cleared.
"""

from onnx import ModelProto, TensorShapeProto, ValueInfoProto


def name_placeholders(model: ModelProto) -> int:
    """Renames in place; the number of placeholders that were found."""
    count = 0
    for value in model.graph.input:
        for axis, dim in enumerate(_dims(value)):
            if is_placeholder(dim):
                dim.dim_param = f"{value.name}_dim_{axis}"
                count += 1
    for value in (*model.graph.output, *model.graph.value_info):
        for dim in _dims(value):
            if is_placeholder(dim):
                dim.ClearField("value")
    return count


def is_placeholder(dim: TensorShapeProto.Dimension) -> bool:
    """A real symbol is an identifier; a real size of an input is positive."""
    if dim.HasField("dim_value"):
        return dim.dim_value < 0
    return dim.HasField("dim_param") and not any(letter.isalnum() for letter in dim.dim_param)


def _dims(value: ValueInfoProto) -> list[TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim) if value.type.HasField("tensor_type") else []
