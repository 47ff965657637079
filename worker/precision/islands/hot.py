"""The hot residual: a stream of activations that passes the range of FP16 before a norm takes it back, as in T5.

An FP32 norm alone does not help: by then the value is infinite. So what makes, adds to and reads it is FP32.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings, ordered


@dataclass(frozen=True, slots=True)
class HotValue:
    """Activations that were measured beyond `share` of what the trunk dtype holds; other inputs may go further."""

    name: str = "hot residual"
    modes: frozenset[str] = MINIMAL
    hazard: str = "activations pass 65504 before the next norm: infinite in FP16, and then NaN"
    share: float = 0.25

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        limit = around.half_max * self.share
        hot = {name for name, size in around.measured.items() if size > limit}
        taken: set[Node] = set()
        for node in graph.nodes:
            if node in taken or node in around.core or hot.isdisjoint(node.proto.output):
                continue
            found = _connected(graph, node, hot, around)
            taken |= found
            peak = max(around.measured[name] for one in found for name in one.proto.output if name in hot)
            reason = f"activations from {node.output!r} on reach {peak:.3g}"
            yield Island(self.name, reason, self.hazard, ordered(found))


def _connected(graph: Graph, start: Node, hot: set[str], around: Surroundings) -> set[Node]:
    """The makers and readers of hot values that hang together with the first."""
    found, pending = {start}, [start]
    while pending:
        node = pending.pop()
        readers = [reader for name in node.proto.output if name in hot for reader in graph.consumers(name)]
        makers = [maker for name in node.proto.input if name in hot and (maker := graph.producer(name)) is not None]
        for neighbour in (*readers, *makers):
            if neighbour not in found and neighbour not in around.core:
                found.add(neighbour)
                pending.append(neighbour)
    return found
