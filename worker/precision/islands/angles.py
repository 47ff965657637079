"""Angles: the value that goes into Cos or Sin, from the positions on. Rotary embeddings, time steps, Fourier features.

BF16 near 4096 rad has a spacing of 32 rad, FP16 of 4: cosines of such an angle are noise. So the angle is FP32 from
its sources up to and including Cos and Sin, whatever the trunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import ROPE, Declined, Island, Surroundings, ordered
from worker.precision.ops import DENSE, ELEMENTWISE, MOVEMENT

_PERIODIC = frozenset({"Cos", "Sin", "Tan"})
_SOURCES = frozenset({"Range", "CumSum", "ConstantOfShape", "EyeLike", "OneHot"})
_BACKWARD = ELEMENTWISE | MOVEMENT | DENSE | _SOURCES


@dataclass(frozen=True, slots=True)
class Angle:
    """Cos and Sin, and everything that makes their argument, back to inputs, integers or activations."""

    name: str = "angle"
    modes: frozenset[str] = ROPE
    hazard: str = "an angle of thousands of radians cannot be held in half: its cosine is noise"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        taken: set[Node] = set()
        for node in graph.nodes:
            if node.op not in _PERIODIC or not graph.is_float(node.input(0)) or node in around.core:
                continue
            found = {node} | _argument(graph, node, taken)
            taken |= found
            yield Island(self.name, f"the angle of {node.op} {node.output!r}", self.hazard, ordered(found))


def _argument(graph: Graph, periodic: Node, taken: set[Node]) -> set[Node]:
    found: set[Node] = set()
    pending = [periodic.input(0)]
    while pending:
        name = pending.pop()
        node = graph.producer(name)
        if (
            node is None
            or node in found
            or node in taken
            or not graph.is_float(name)
            or not _belongs(graph, node, name)
        ):
            continue
        found.add(node)
        pending.extend(graph.float_inputs(node))
    return found


def _belongs(graph: Graph, node: Node, name: str) -> bool:
    """Positions and features wholly; of an activation only its scaling by constants right before (as in Snake)."""
    if name not in graph.dense:
        return node.op in _BACKWARD
    if node.op in MOVEMENT:
        return True
    others = [value for value in graph.float_inputs(node) if value not in graph.static]
    return node.is_a("Mul", "Div", "Add", "Sub", "Neg") and len(others) == 1
