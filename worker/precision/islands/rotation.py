"""What is done with cosines and sines: apply-rotary, and the features that are put together from them."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import ROPE, Declined, Island, Surroundings, ordered
from worker.precision.ops import MOVEMENT

_FLOWS = frozenset({"Mul", "Add", "Sub", "Neg", "Div", "Sum", "Cast"}) | MOVEMENT


@dataclass(frozen=True, slots=True)
class Rotation:
    """Forward from Cos and Sin through products and sums; ends where the result meets anything else.

    A product may bring in an activation (q times cos). A sum belongs only if all that it adds does: the addition of a
    positional embedding to the trunk is the trunk's.
    """

    name: str = "rotation"
    modes: frozenset[str] = ROPE
    hazard: str = "rounding the rotation moves every position a little, at every layer"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        taken = set(around.core)
        values = {node.output for node in graph.nodes if node.is_a("Cos", "Sin")} | graph.static
        for node in graph.nodes:
            if not node.is_a("Cos", "Sin") or node.output in graph.static or not graph.is_float(node.output):
                continue
            found = _flow(graph, node, taken, values)
            if found:
                taken |= found
                yield Island(self.name, f"products and sums of {node.output!r}", self.hazard, ordered(found))
        for node in graph.nodes:
            if node.op.endswith("RotaryEmbedding") and node not in taken and graph.float_inputs(node):
                yield Island(self.name, f"{node.op} of {node.input(0)!r}", self.hazard, (node,))


def _flow(graph: Graph, start: Node, taken: set[Node], values: set[str]) -> set[Node]:
    """`values`: what belongs to a rotation so far, to which those found are added: a sum adds what two starts gave.

    Beyond a node that is taken nothing is new.
    """
    found: set[Node] = set()
    pending = [start.output]
    while pending:
        for node in graph.consumers(pending.pop()):
            if node in found or node in taken or node.op not in _FLOWS:
                continue
            inputs = graph.float_inputs(node)
            ready = all(name in values for name in inputs)
            if ready or node.is_a("Mul"):
                found.add(node)
                values.update(graph.float_outputs(node))
                pending.extend(graph.float_outputs(node))
    return found
