"""Which islands of a plan may be given up if the samples allow it, and what forbids it for the others."""

from collections.abc import Mapping
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands import Island, Surroundings
from worker.precision.islands.integers import ExactInteger
from worker.precision.islands.requests import matching
from worker.precision.plan import PrecisionPlan
from worker.verify.search.recipe import word
from worker.verify.search.types import Candidate

_ALWAYS = {
    "requested": "keep_fp32 asks for it",
    "mask": "a mask beyond the range gives NaN in rows that no sample may have",
    "attention": "whether a core is bounded is no question of accuracy alone",
    "exact integers": "whether an integer fits depends on lengths that no sample may have",
    "guarded division": "it divides by zero only on inputs that no sample may have",
    "long reduction": "how a GPU accumulates is not seen in emulation",
    "quantized": "its scales are FP32 by definition",
    "hot residual": "it was measured close to overflow",
}


def candidates(graph: Graph, plan: PrecisionPlan) -> tuple[Candidate, ...]:
    """One for each island of the plan, in its order."""
    labels = {word(node) for island in plan.islands for node in island.nodes}
    facts = _Facts(graph, matching(graph.nodes, sorted(labels)), _positions(graph))
    return tuple(Candidate(number, island, facts.obstacle(island)) for number, island in enumerate(plan.islands))


@dataclass(frozen=True, slots=True)
class _Facts:
    """`named`: the nodes that each word means. `positions`: floats made of positions, counts and lengths."""

    graph: Graph
    named: Mapping[str, tuple[Node, ...]]
    positions: frozenset[str]

    def obstacle(self, island: Island) -> str | None:
        if island.family in _ALWAYS:
            return _ALWAYS[island.family]
        if any(node.graph is not self.graph.index.main for node in island.nodes):
            return "it lies in a subgraph, which is not observed"
        if any(other not in island.nodes for node in island.nodes for other in self.named[word(node)]):
            return "other nodes have the same names, so that it cannot be named alone"
        if island.family == "angle" and any(not self.positions.isdisjoint(node.proto.input) for node in island.nodes):
            return "how large a position's angle gets depends on lengths that no sample may have"
        return None


def _positions(graph: Graph) -> frozenset[str]:
    """What exact integers flow into before dense work."""
    exact = [island for island in ExactInteger().find(graph, Surroundings()) if isinstance(island, Island)]
    found = {name for island in exact for node in island.nodes for name in graph.float_outputs(node)}
    for node in graph.nodes:
        if not found.isdisjoint(graph.float_inputs(node)):
            found.update(name for name in graph.float_outputs(node) if name not in graph.dense)
    return frozenset(found)
