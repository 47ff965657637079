"""Exact integers carried in floats: sizes, positions, boxes and grids computed from Shape, Range or integer Casts."""

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import TensorProto

from worker.graph.dtype import type_string
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.graph.walk import subgraphs
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings, ordered
from worker.precision.ops import ARITHMETIC, MOVEMENT

_WIDE_INTEGERS = frozenset(
    type_string(dtype)
    for dtype in (
        TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32,
        TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64,
    )
)  # fmt: skip
_INTEGERS = _WIDE_INTEGERS | {type_string(TensorProto.INT8), type_string(TensorProto.UINT8)}
_COUNTED = "a float that a loop counts in"
_ROUNDING = frozenset({"Round", "Floor", "Ceil", "Trunc"})
_FLOWS = (ARITHMETIC - {"Exp", "Log"}) | MOVEMENT | {
    "Neg", "Abs", "Max", "Min", "Clip", "Where", "Sign", "Trunc", "Cast", "CumSum", "Sum",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExactInteger:
    """From a float that holds an integer, through arithmetic with constants and its like. Bytes and bools are exact."""

    name: str = "exact integers"
    modes: frozenset[str] = MINIMAL
    hazard: str = "FP16 holds integers to 2048 only, BF16 to 256"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        seeds = {node: _seed_reason(graph, node) for node in graph.nodes if _seed_reason(graph, node)}
        counters = _counters(graph)
        exact = {name for node in seeds for name in graph.float_outputs(node)} | counters
        seeds.update({reader: _COUNTED for name in sorted(counters) for reader in _flow_into(graph, name, exact)})
        taken: set[Node] = set()
        for node, reason in seeds.items():
            if node in taken or node in around.core:
                continue
            found = _flow(graph, node, exact, taken) - around.core
            taken |= found
            yield Island(self.name, f"{reason}: {node.output!r}, and arithmetic on it", self.hazard, ordered(found))
        for node in graph.nodes:
            if node.is_a("Cast") and graph.types.get(node.output) in _INTEGERS and node not in around.core:
                found = _origin(graph, node) - taken - around.core
                taken |= found
                if found:
                    yield Island(self.name, f"what becomes the integer {node.output!r}", self.hazard, ordered(found))


def _counters(graph: Graph) -> set[str]:
    """Floats that a Loop carries from a constant on: what constants are added to may count its turns."""
    return {
        value.name
        for node in graph.nodes
        if node.is_a("Loop")
        for body in subgraphs(node.proto)
        for position, value in enumerate(body.input)
        if graph.is_float(value.name) and node.input(position) in graph.static
    }


def _flow_into(graph: Graph, name: str, exact: set[str]) -> list[Node]:
    """Arithmetic on the value with constants and its like."""
    return [
        node
        for node in graph.consumers(name)
        if node.op in _FLOWS and all(one in exact or one in graph.static for one in graph.float_inputs(node))
    ]


def _seed_reason(graph: Graph, node: Node) -> str | None:
    if not graph.float_outputs(node) or node.output in graph.static:
        return None
    if node.is_a("Cast") and graph.types.get(node.input(0)) in _WIDE_INTEGERS:
        return "an integer as a float"
    if node.is_a("Range"):
        return "a range of floats"
    if node.is_a("CumSum") and node.input(0) not in graph.dense:
        return "a running sum"
    return None


def _origin(graph: Graph, cast: Node) -> set[Node]:
    """Arithmetic that ends in a Cast to an integer; of an activation only its rounding."""
    found: set[Node] = set()
    pending = [cast.input(0)]
    while pending:
        name = pending.pop()
        node = graph.producer(name)
        if node is None or node in found or name in graph.static or not graph.is_float(name):
            continue
        if node.op in _ROUNDING or (name not in graph.dense and node.op in _FLOWS):
            found.add(node)
            pending.extend(graph.float_inputs(node))
    return found


def _flow(graph: Graph, seed: Node, exact: set[str], taken: set[Node]) -> set[Node]:
    """Beyond a node that is taken nothing is new."""
    found, pending = {seed}, [seed.output]
    while pending:
        for node in graph.consumers(pending.pop()):
            if node in found or node in taken or node.op not in _FLOWS:
                continue
            if all(name in exact or name in graph.static for name in graph.float_inputs(node)):
                found.add(node)
                exact.update(graph.float_outputs(node))
                pending.extend(graph.float_outputs(node))
    return found
