"""What can be said of a converted graph without running it: valid, sorted, typed throughout, a drop-in replacement."""

from pathlib import Path

import onnx
import onnx.checker
import onnx.shape_inference
from onnx import ModelProto, ValueInfoProto

from service.errors import CheckFailed
from worker.graph.index import GraphIndex, build_index
from worker.graph.inference import type_text
from worker.graph.load import load
from worker.graph.node import Node
from worker.graph.skeleton import open_skeleton
from worker.graph.types import Types
from worker.verify.emulate import known_types
from worker.verify.types import Unverifiable
from worker.verify.weights import without_weights


def check_structure(source: Path, converted: Path) -> None:
    """Raises CheckFailed, naming the node or tensor. No weights are read."""
    original = open_skeleton(source).model
    check_valid(open_skeleton(converted).model, full=_inferable(original))
    index = build_index(load(converted))
    check_types(index)
    check_interface(original, index.model)


def check_valid(model: ModelProto, *, full: bool = True) -> None:
    """The ONNX checker, `full` with shape inference; it also refuses nodes that come before what they read."""
    try:
        onnx.checker.check_model(without_weights(model), full_check=full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise CheckFailed(f"the converted graph is not valid ONNX: {str(error).strip()}") from error


def _inferable(source: ModelProto) -> bool:
    """Shape inference has faults of its own: what it refuses in the source says nothing about the conversion."""
    try:
        check_valid(source)
    except CheckFailed:
        return False
    return True


def check_types(index: GraphIndex) -> None:
    """Every value has a type, and every node takes types that its schema allows and that agree with each other."""
    try:
        types = known_types(index)
    except Unverifiable as unknown:
        raise CheckFailed(f"the converted graph is not fully typed: {unknown}") from unknown
    for node in index.nodes:
        _check_node(node, types)


def check_interface(source: ModelProto, converted: ModelProto) -> None:
    """Public inputs and outputs keep names, order, dtypes and ranks."""
    for kind, before, after in (
        ("inputs", _required_inputs(source), _required_inputs(converted)),
        ("outputs", list(source.graph.output), list(converted.graph.output)),
    ):
        names = [[value.name for value in values] for values in (before, after)]
        if names[0] != names[1]:
            raise CheckFailed(f"the {kind} were {names[0]} and are now {names[1]}")
        for old, new in zip(before, after, strict=True):
            if _signature(old) != _signature(new):
                raise CheckFailed(f"{kind[:-1]} {old.name!r} was {_signature(old)} and is now {_signature(new)}")


def _check_node(node: Node, types: Types) -> None:
    if node.schema is None:
        return
    bound: dict[str, str] = {}
    for slot in node.inputs:
        text = types.get(slot.name)
        if text is None or slot.variable is None:
            continue
        expected = slot.variable if slot.pinned else bound.setdefault(slot.variable, text)
        here = f"node {node.label!r} ({node.op}) takes {slot.name!r} as {text}"
        if text != expected:
            raise CheckFailed(f"{here}, where {expected} is needed", node=node.label)
        if not slot.pinned and not node.allows(slot.variable, text):
            raise CheckFailed(f"{here}; its schema at opset {node.opset} does not allow that", node=node.label)


def _required_inputs(model: ModelProto) -> list[ValueInfoProto]:
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in defaults]


def _signature(value: ValueInfoProto) -> tuple[str | None, tuple[int | None, ...] | None]:
    """Type and dims; symbols may be renamed, and a negative size means an unknown one, as exporters write it."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return type_text(value.type), None
    sizes = (dim.dim_value for dim in tensor.shape.dim)
    return type_text(value.type), tuple(size if size > 0 else None for size in sizes)
