"""Which weights stay FP32, and who wants them so."""

from collections.abc import Iterator

from worker.graph.dtype import FLOAT, itemsize
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.plan import PrecisionPlan
from worker.precision.report import KeptWeight


def kept_weights(graph: Graph, plan: PrecisionPlan) -> tuple[KeptWeight, ...]:
    """Float weights that at least one node reads in FP32, in the order in which they are read first."""
    readers: dict[str, list[Node]] = {}
    for name, node in _fp32_reads(graph, plan):
        readers.setdefault(name, []).append(node)
    return tuple(_kept(graph, plan, name, nodes) for name, nodes in readers.items())


def _fp32_reads(graph: Graph, plan: PrecisionPlan) -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        for slot in node.inputs:
            if graph.weight(slot.name) is None or graph.types.get(slot.name) != FLOAT:
                continue
            if not plan.wants_half(node, slot):
                yield slot.name, node


def _kept(graph: Graph, plan: PrecisionPlan, name: str, nodes: list[Node]) -> KeptWeight:
    tensor, decision = graph.index.weights[name], plan.decisions[nodes[0].index]
    size = itemsize(tensor.data_type)
    for dim in tensor.dims:
        size *= dim
    reason = f"{nodes[0].op} reads it in FP32" if decision.is_half else decision.reason
    return KeptWeight(
        name=name,
        shape=tuple(tensor.dims),
        size=size,
        reason=reason,
        readers=tuple(dict.fromkeys(node.label for node in nodes)),
    )
