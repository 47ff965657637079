"""The self-check: a rewritten graph is typed again from scratch, and every node must satisfy its schema."""

from collections.abc import Iterator

from onnx import ModelProto

from service.errors import ConversionFailed
from worker.graph.index import GraphIndex, build_index
from worker.graph.inference import infer, type_text
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.graph.types import Types, propagate

Interface = tuple[tuple[str, str | None], ...]


def interface(model: ModelProto) -> tuple[Interface, Interface]:
    """Public inputs and outputs, in order, with their types."""
    graph = model.graph
    return (
        tuple((value.name, type_text(value.type)) for value in graph.input),
        tuple((value.name, type_text(value.type)) for value in graph.output),
    )


def check(skeleton: Skeleton, before: tuple[Interface, Interface]) -> Types:
    """The types of the rewritten model. Raises ConversionFailed naming node and tensor."""
    if interface(skeleton.model) != before:
        raise ConversionFailed("the rewrite changed the model's public inputs or outputs; this is a fault of atoll")
    index = build_index(skeleton)
    types = propagate(index, infer(skeleton.model))
    for fault in _faults(index, types, dict(before[1])):
        raise ConversionFailed(f"{fault}. The plan could not be applied; this is a fault of atoll")
    return types


def _faults(index: GraphIndex, types: Types, outputs: dict[str, str | None]) -> Iterator[str]:
    made = set(index.homes) - set(index.producers)
    for node in index.nodes:
        for slot in node.inputs:
            if slot.name and slot.name not in made and slot.name not in index.homes:
                yield f"node {node.label!r} reads {slot.name!r}, which nothing makes"
        yield from _node_faults(node, types)
    for name, declared in outputs.items():
        found = types.get(name)
        if declared is not None and found is not None and found != declared:
            yield f"output {name!r} is declared {declared} and computed as {found}"


def _node_faults(node: Node, types: Types) -> Iterator[str]:
    bound: dict[str, tuple[str, str]] = {}
    for slot in node.inputs:
        found = types.get(slot.name)
        if not slot.name or found is None or slot.variable is None:
            continue
        if slot.pinned:
            if found != slot.variable:
                yield f"node {node.label!r} ({node.op}) takes {slot.variable} for {slot.name!r}, which is {found}"
            continue
        first = bound.setdefault(slot.variable, (slot.name, found))
        if first[1] != found:
            yield f"node {node.label!r} ({node.op}) mixes {first[0]!r} ({first[1]}) with {slot.name!r} ({found})"
        if not node.allows(slot.variable, found):
            yield f"node {node.label!r} ({node.op}) does not take {found} for {slot.name!r} at opset {node.opset}"
