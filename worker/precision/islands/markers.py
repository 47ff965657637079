"""Explicit markers: Casts to FP32 that `.float()` and disabled autocast leave behind; `full` follows them forward."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import FULL, Declined, Island, Surroundings, ordered


@dataclass(frozen=True, slots=True)
class ExplicitMarker:
    """Every node that a marked read leads to, up to the next Cast or marked read, or a bounded attention core."""

    name: str = "explicit FP32"
    modes: frozenset[str] = FULL
    hazard: str = "the author asked for FP32 here"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        taken = set(around.core)
        for index, position in sorted(graph.marked):
            node = graph.nodes[index]
            if node in taken or not graph.is_float(node.input(position)):
                continue
            found = _region(graph, node, taken)
            taken |= found
            yield Island(self.name, f"behind the Cast before {node.label!r}", self.hazard, ordered(found))


def _region(graph: Graph, start: Node, taken: set[Node]) -> set[Node]:
    """Beyond a node that is taken nothing is new."""
    found, pending = {start}, [start]
    while pending:
        for name in graph.float_outputs(pending.pop()):
            for use in graph.uses(name):
                closed = (use.node.index, use.position) in graph.marked or use.node.is_a("Cast")
                if not closed and use.node not in found and use.node not in taken:
                    found.add(use.node)
                    pending.append(use.node)
    return found
