"""What a family of islands answers: nodes to keep in FP32 with a reason, or why it declined."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from worker.graph.graph import Graph
from worker.graph.node import Node

MINIMAL = frozenset({"minimal", "rope", "full"})
ROPE = frozenset({"rope", "full"})
FULL = frozenset({"full"})


@dataclass(frozen=True, slots=True)
class Island:
    """Nodes that are kept in FP32 together, in topological order."""

    family: str
    reason: str
    hazard: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Declined:
    """A node that looked like the family's business, and why it was left alone."""

    family: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a family may know besides the graph: nodes of bounded attention cores are spoken for; `half_max` is the
    largest finite value of the trunk dtype, `smallest_normal` the smallest that it holds in full; `measured` are
    largest magnitudes of values in FP32 runs."""

    core: frozenset[Node] = field(default_factory=frozenset)
    half_max: float = 65504.0
    smallest_normal: float = 2.0**-14
    measured: Mapping[str, float] = field(default_factory=dict)


class Family(Protocol):
    """A pattern family. Frozen dataclass; its fields are its options."""

    @property
    def name(self) -> str: ...

    @property
    def modes(self) -> frozenset[str]: ...

    def find(self, graph: Graph, around: Surroundings, /) -> Iterator[Island | Declined]: ...


def ordered(nodes: set[Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes, key=lambda node: node.index))
