"""Divisions whose divisor is kept from zero by a bound that half cannot hold: the bound is lost, and 0/0 is left."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings, ordered
from worker.precision.ops import MOVEMENT

_BOUNDS = frozenset({"Clip", "Max", "Add", "Where"})
_PASSES = MOVEMENT | {"Sqrt", "Cast", "Abs"}


@dataclass(frozen=True, slots=True)
class GuardedDivision:
    """From the bound to each Div or Reciprocal by it: masked means, weights that are made to sum up to one."""

    name: str = "guarded division"
    modes: frozenset[str] = MINIMAL
    hazard: str = "the bound that keeps the divisor from zero is lost in half: 0/0, or infinite"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if node in around.core or node.op not in _BOUNDS or node.output in graph.static:
                continue
            bound = _lost_bound(graph, node, around.smallest_normal)
            found = _ways_to_division(graph, node, around) if bound is not None else set()
            if found:
                reason = f"{node.output!r} is kept from zero by {bound:.3g}, and something is divided by it"
                yield Island(self.name, reason, self.hazard, ordered(found | {node}))


def _lost_bound(graph: Graph, node: Node, smallest: float) -> float | None:
    values = (graph.scalar(name) for name in graph.float_inputs(node))
    return next((value for value in values if value is not None and 0.0 < value < smallest), None)


def _ways_to_division(graph: Graph, guard: Node, around: Surroundings) -> set[Node]:
    """Divisions by the guarded value, and what lies between."""
    before: dict[Node, Node] = {}
    divisions: list[Node] = []
    pending = [guard]
    while pending:
        node = pending.pop()
        for use in (use for name in graph.float_outputs(node) for use in graph.uses(name)):
            if use.node in before or use.node in around.core:
                continue
            if use.node.is_a("Reciprocal") or (use.node.is_a("Div") and use.position == 1):
                before[use.node] = node
                divisions.append(use.node)
            elif use.node.op in _PASSES and use.position == 0:
                before[use.node] = node
                pending.append(use.node)
    return {step for division in divisions for step in _back(division, before)}


def _back(division: Node, before: dict[Node, Node]) -> Iterator[Node]:
    step: Node | None = division
    while step is not None:
        yield step
        step = before.get(step)
