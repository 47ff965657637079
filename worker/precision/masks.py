"""Masks of attention cores: huge negative values that half precision cannot hold.

A finite mask value beyond the trunk's range is saturated to three quarters of the lowest. Then a score may be added
without becoming infinite, so that a fully masked row gives no NaN. An infinite mask stays infinite. A mask that comes
from a public input is guarded where it is cast, as its values are not known.
"""

from dataclasses import dataclass
from functools import cache

from onnx import TensorProto

from worker.graph.dtype import HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.graph.weights import statistics
from worker.precision.attention import AttentionCore
from worker.precision.ops import MOVEMENT

_MASK_OPS = MOVEMENT | {
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Where",
    "Cast",
    "Neg",
    "Max",
    "Min",
    "Clip",
    "ConstantOfShape",
    "Sum",
}
_LONGEST_WAY = 64


@dataclass(frozen=True, slots=True)
class Masks:
    """`saturate`: constants to bring into range. `nodes`: arithmetic on them, to be kept in FP32 up to the core.
    `guard`: values of unknown range that are clamped when they are cast."""

    saturate: frozenset[str]
    nodes: frozenset[Node]
    guard: frozenset[str]


def plan_masks(graph: Graph, cores: list[AttentionCore], half: HalfType) -> Masks:
    saturate: set[str] = set()
    nodes: set[Node] = set()
    guard: set[str] = set()
    stop = {node for core in cores for node in core.nodes}
    is_huge = cache(lambda leaf: _is_huge(graph, leaf, half))  # many cores share one mask
    for name in dict.fromkeys(name for core in cores for name in core.masks):
        made_by, leaves = _slice(graph, name, stop)
        huge = {leaf for leaf in leaves if is_huge(leaf)}
        saturate |= huge
        if huge:
            nodes |= made_by
        if any(graph.is_public_input(leaf) for leaf in leaves) and not any(_bounds(node) for node in made_by):
            guard.add(name)
    return Masks(frozenset(saturate), frozenset(nodes), frozenset(guard))


def _slice(graph: Graph, name: str, stop: set[Node]) -> tuple[set[Node], set[str]]:
    """The nodes that make the mask, and the floats that they start from; an activation is a start like any other."""
    nodes: set[Node] = set()
    leaves: set[str] = set()
    pending, seen = [name], {name}
    while pending:
        value = pending.pop()
        node = graph.producer(value)
        if graph.weight(value) is not None or node is None:
            leaves.add(value)
        elif value in graph.dense or node in stop or node.op not in _MASK_OPS or len(nodes) > _LONGEST_WAY:
            continue
        else:
            nodes.add(node)
            if node.is_a("ConstantOfShape"):
                leaves.add(value)
            fresh = [value for value in graph.float_inputs(node) if value not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return nodes, leaves


def _is_huge(graph: Graph, name: str, half: HalfType) -> bool:
    tensor = _constant(graph, name)
    if tensor is None or tensor.data_type != TensorProto.FLOAT:
        return False
    return statistics(graph.index.skeleton, tensor, half).max_abs > half.max


def _constant(graph: Graph, name: str) -> TensorProto | None:
    """A weight of any size, or the value of a ConstantOfShape."""
    node = graph.producer(name)
    if node is not None and node.is_a("ConstantOfShape"):
        fill: TensorProto | None = node.attribute("value")
        return fill
    return graph.weight(name)


def _bounds(node: Node) -> bool:
    """Arithmetic with constants decides the range (as in `(1 - m) * -1e9`); its constants are saturated instead."""
    return node.is_a("Mul", "Where", "Clip")
