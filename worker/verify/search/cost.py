"""What FP32 costs in a plan, by the sizes that the samples had: bytes moved, and operations as bytes."""

from collections.abc import Mapping
from math import prod

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.ops import DENSE
from worker.precision.plan import PrecisionPlan

_FLOPS_PER_BYTE = 64
"""FP32 units of a GPU do about as many operations in the time in which one byte comes from memory."""

_CORE_FACTOR = 4
"""An attention core in FP32 does not fuse: about four times the time of a fused one was measured."""

Shapes = Mapping[str, tuple[int, ...]]


def plan_cost(graph: Graph, plan: PrecisionPlan, shapes: Shapes) -> float:
    """Bytes, and operations in units of `_FLOPS_PER_BYTE`, of all nodes that compute activations in FP32."""
    in_core = {node.index for core in plan.cores for node in core.core.nodes}
    return sum(
        node_cost(graph, node, shapes) * (_CORE_FACTOR if node.index in in_core else 1)
        for node in graph.nodes
        if not plan.decisions[node.index].is_half
    )


def node_cost(graph: Graph, node: Node, shapes: Shapes) -> float:
    """The same of one node in FP32. Static values and constants cost nothing: they are computed once."""
    made = [name for name in graph.float_outputs(node) if name not in graph.static]
    if not made:
        return 0.0
    elements = sum(_size(graph, name, shapes) for name in (*graph.float_inputs(node), *made))
    return 4.0 * elements + _operations(graph, node, shapes) / _FLOPS_PER_BYTE


def _operations(graph: Graph, node: Node, shapes: Shapes) -> float:
    """Of dense work: two for each element of a result and each term of its sum."""
    if node.op not in DENSE:
        return 0.0
    results = _size(graph, node.output, shapes)
    if node.is_a("Attention"):
        return 4.0 * _size(graph, node.input(0), shapes) * _axis(graph, node.input(1), shapes, -2)
    if node.is_a("Conv", "ConvTranspose", "DeformConv"):
        kernel = _shape(graph, node.input(1), shapes)
        return 2.0 * results * prod(kernel[1:])
    return 2.0 * results * _axis(graph, node.input(0), shapes, -1)


def _axis(graph: Graph, name: str, shapes: Shapes, axis: int) -> int:
    shape = _shape(graph, name, shapes)
    return shape[axis] if len(shape) >= abs(axis) else 1


def _size(graph: Graph, name: str, shapes: Shapes) -> int:
    return prod(_shape(graph, name, shapes))


def _shape(graph: Graph, name: str, shapes: Shapes) -> tuple[int, ...]:
    """As it was in a run; of a weight or an input, as the file says, unknown axes as 1."""
    if name in shapes:
        return shapes[name]
    return tuple(dim or 1 for dim in graph.shape(name) or ())
