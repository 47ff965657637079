"""Which weights stay FP32, and who wants them so."""

from collections.abc import Iterator, Mapping
from math import prod

from onnx import TensorProto

from worker.graph.dtype import FLOAT, itemsize
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.plan import PrecisionPlan
from worker.precision.report import KeptWeight


def kept_weights(graph: Graph, plan: PrecisionPlan) -> tuple[KeptWeight, ...]:
    """Float weights that at least one node reads in FP32, in the order in which they are read first."""
    families = {node.index: island.family for island in plan.islands for node in island.nodes}
    readers: dict[str, list[Node]] = {}
    for name, node in _fp32_reads(graph, plan):
        readers.setdefault(name, []).append(node)
    return tuple(_kept(graph.index.weights[name], nodes, plan, families) for name, nodes in readers.items())


def _fp32_reads(graph: Graph, plan: PrecisionPlan) -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        for slot in node.inputs:
            if graph.weight(slot.name) is None or graph.types.get(slot.name) != FLOAT:
                continue
            if not plan.wants_half(node, slot):
                yield slot.name, node


def _kept(tensor: TensorProto, nodes: list[Node], plan: PrecisionPlan, families: Mapping[int, str]) -> KeptWeight:
    first, decision = nodes[0], plan.decisions[nodes[0].index]
    if decision.is_half:
        cause, reason = "held by the operator", f"{first.op} in {plan.half.name} reads it in FP32"
    else:
        cause, reason = families.get(first.index, decision.cause.value), decision.reason
    return KeptWeight(
        name=tensor.name or first.output,
        shape=tuple(tensor.dims),
        size=prod(tensor.dims) * itemsize(tensor.data_type),
        cause=cause,
        reason=reason,
        readers=tuple(dict.fromkeys(node.label for node in nodes)),
    )
