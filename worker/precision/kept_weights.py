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
    return tuple(
        _kept(name, graph.index.weights[name], nodes, *_why(nodes[0], plan, families))
        for name, nodes in readers.items()
    )


def _fp32_reads(graph: Graph, plan: PrecisionPlan) -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        for slot in node.inputs:
            if graph.weight(slot.name) is None or graph.types.get(slot.name) != FLOAT:
                continue
            if not plan.wants_half(node, slot):
                yield slot.name, node


def _why(reader: Node, plan: PrecisionPlan, families: Mapping[int, str]) -> tuple[str, str]:
    decision = plan.decisions[reader.index]
    if decision.is_half:
        return "held by the operator", f"{reader.op} in {plan.half.name} reads it in FP32"
    return families.get(reader.index, decision.cause.value), decision.reason


def _kept(name: str, tensor: TensorProto, nodes: list[Node], cause: str, reason: str) -> KeptWeight:
    return KeptWeight(
        name=name,
        shape=tuple(tensor.dims),
        size=prod(tensor.dims) * itemsize(tensor.data_type),
        cause=cause,
        reason=reason,
        readers=tuple(dict.fromkeys(node.label for node in nodes)),
    )
