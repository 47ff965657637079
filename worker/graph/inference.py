"""Shapes, and element types where our own propagation has none, from ONNX's shape inference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import onnx
import onnx.shape_inference
from onnx import ModelProto, TypeProto

from worker.graph.dtype import type_string
from worker.graph.walk import graphs

Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Inferred:
    """What is known of values by name. `failure` says why inference stopped early, if it did."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    failure: str | None = None


def infer(model: ModelProto, max_shapes: Mapping[str, Shape] | None = None) -> Inferred:
    """Never raises: a graph that cannot be inferred has fewer facts, and the reason.

    `max_shapes` stand in for the dynamic dimensions of inputs, so that shapes are the largest that occur.
    """
    bare = ModelProto()
    bare.CopyFrom(model)
    for graph in graphs(bare.graph):
        del graph.value_info[:]
    _bind(bare, max_shapes or {})
    failure = None
    try:
        bare = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    except Exception as error:  # onnx raises bare RuntimeError subclasses from C++
        failure = str(error).splitlines()[0]
    result = Inferred(failure=failure)
    for name, value_type in _declared(bare):
        _record(result, name, value_type)
    for name, value_type in _declared(model):
        text = type_text(value_type)
        if text is not None:
            result.types.setdefault(name, text)
    return result


def _bind(model: ModelProto, max_shapes: Mapping[str, Shape]) -> None:
    """Gives dynamic dimensions of inputs their largest size; declared output shapes give way to what is inferred."""
    bound = [value for value in model.graph.input if value.name in max_shapes]
    for value in bound:
        dims, sizes = value.type.tensor_type.shape.dim, max_shapes[value.name]
        if len(dims) == len(sizes):
            for dim, size in zip(dims, sizes, strict=True):
                if dim.dim_value <= 0 and size is not None:
                    dim.dim_value = size
    for value in model.graph.output if bound else ():
        value.type.tensor_type.ClearField("shape")


def type_text(value_type: TypeProto) -> str | None:
    """A `TypeProto` in the spelling of operator schemas, `seq(tensor(float))` included; None when it says nothing."""
    kind = value_type.WhichOneof("value")
    if kind == "tensor_type":
        elem = value_type.tensor_type.elem_type
        return type_string(elem) if elem else None
    if kind == "sparse_tensor_type":
        return f"sparse_{type_string(value_type.sparse_tensor_type.elem_type)}"
    if kind in ("sequence_type", "optional_type"):
        inner = type_text(getattr(value_type, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})" if inner else None
    return f"{kind}" if kind else None


def _declared(model: ModelProto) -> Iterator[tuple[str, TypeProto]]:
    for graph in graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name, value.type


def _record(result: Inferred, name: str, value_type: TypeProto) -> None:
    text = type_text(value_type)
    if text is not None:
        result.types[name] = text
    if value_type.WhichOneof("value") == "tensor_type" and value_type.tensor_type.HasField("shape"):
        dims = value_type.tensor_type.shape.dim
        result.shapes[name] = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in dims)
