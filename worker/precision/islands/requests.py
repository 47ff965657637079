"""What the user asked for by name: `keep_fp32`."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings


@dataclass(frozen=True, slots=True)
class Requested:
    """Nodes whose name matches a glob, or whose operator type is the word. A word that matches nothing is told."""

    globs: tuple[str, ...] = ()
    name: str = "requested"
    modes: frozenset[str] = MINIMAL
    hazard: str = "asked for by keep_fp32"

    def find(self, graph: Graph, _around: Surroundings) -> Iterator[Island | Declined]:
        for glob in self.globs:
            nodes = tuple(node for node in graph.nodes if matches(node, glob))
            if nodes:
                yield Island(self.name, f"matches {glob!r}", self.hazard, nodes)
            else:
                yield Declined(self.name, glob, "no node has such a name or operator type")


def matches(node: Node, glob: str) -> bool:
    return node.op == glob or fnmatchcase(node.label, glob)
