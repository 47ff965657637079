"""What the user asked for by name: `keep_fp32`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings

_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Requested:
    """Nodes whose name matches a glob, or whose operator type is the word. A word that matches nothing is told."""

    globs: tuple[str, ...] = ()
    name: str = "requested"
    modes: frozenset[str] = MINIMAL
    hazard: str = "asked for by keep_fp32"

    def find(self, graph: Graph, _around: Surroundings) -> Iterator[Island | Declined]:
        for glob, nodes in matching(graph.nodes, self.globs).items():
            if nodes:
                yield Island(self.name, f"matches {glob!r}", self.hazard, nodes)
            else:
                yield Declined(self.name, glob, "no node has such a name or operator type")


def matches(node: Node, glob: str) -> bool:
    return node.op == glob or fnmatchcase(node.label, glob)


def matching(nodes: Iterable[Node], globs: Iterable[str]) -> dict[str, tuple[Node, ...]]:
    """The nodes that each word means, in order. Thousands of plain names, as recipes have them, are looked up."""
    every = tuple(nodes)
    named: dict[str, dict[Node, None]] = defaultdict(dict)
    for node in every:
        named[node.op][node] = None
        named[node.label][node] = None
    return {
        glob: tuple(node for node in every if matches(node, glob)) if _WILD & set(glob) else tuple(named.get(glob, ()))
        for glob in globs
    }
