"""Softmax outside attention cores: routers, classifiers, heads."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings


@dataclass(frozen=True, slots=True)
class LoneSoftmax:
    name: str = "softmax"
    modes: frozenset[str] = MINIMAL
    hazard: str = "the sum of exponentials is rounded in half; small probabilities vanish"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if not node.is_a("Softmax", "LogSoftmax") or not graph.is_float(node.input(0)):
                continue
            if node in around.core:
                yield Declined(self.name, node.label, "it is the softmax of a bounded attention core")
            else:
                yield Island(self.name, "softmax outside a bounded attention core", self.hazard, (node,))
