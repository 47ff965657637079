"""Constants that the trunk dtype cannot hold: too large, or so small that rounding takes them away."""

from dataclasses import dataclass, field
from math import prod

from worker.graph.dtype import FLOAT, HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.graph.weights import Statistics
from worker.precision.weight_facts import LARGEST_LOSS, WeightFacts

_BOUNDS: dict[str, frozenset[int]] = {
    "Clip": frozenset({1, 2}),
    "Pad": frozenset({2}),
    "Max": frozenset(),
    "Min": frozenset(),
}


@dataclass(slots=True)
class ConstantHazards:
    """Looks at each constant once. `saturated` collects bounds that are clamped to the half range instead."""

    graph: Graph
    half: HalfType
    facts: WeightFacts
    saturated: set[str] = field(default_factory=set)
    non_finite: dict[str, int] = field(default_factory=dict)
    _known: dict[str, Statistics] = field(default_factory=dict)

    def reason(self, node: Node, variables: frozenset[str]) -> str | None:
        """Why the node must stay FP32; None when each constant that it would read in half can be rounded."""
        for slot in node.inputs:
            if slot.variable not in variables or slot.name not in self.graph.static:
                continue
            if self.graph.types.get(slot.name) != FLOAT:
                continue
            for name in self._roots(slot.name):
                found = self._reason(node, slot.index, name)
                if found is not None:
                    return found
        return None

    def _reason(self, node: Node, position: int, name: str) -> str | None:
        facts = self._statistics(name)
        if facts.max_abs > self.half.max:
            if _is_bound(node, position):
                self.saturated.add(name)
                return None
            return f"constant {name!r} reaches {facts.max_abs:.4g}, beyond {self.half.name}'s {self.half.max:.5g}"
        if facts.lost > LARGEST_LOSS:
            return f"constant {name!r} (up to {facts.max_abs:.3g}) loses {facts.lost:.0%} of itself to rounding"
        return None

    def _roots(self, name: str) -> list[str]:
        """The FP32 constants that a static value is computed from."""
        roots, pending, seen = [], [name], {name}
        while pending:
            value = pending.pop()
            if self.graph.weight(value) is not None:
                if self.graph.types.get(value) == FLOAT:
                    roots.append(value)
                continue
            node = self.graph.producer(value)
            fresh = [slot.name for slot in node.inputs if slot.name and slot.name not in seen] if node else []
            seen.update(fresh)
            pending.extend(fresh)
        return roots

    def _statistics(self, name: str) -> Statistics:
        if name not in self._known:
            tensor = self.graph.index.weights[name]
            self._known[name] = self.facts.of(self.graph.index.skeleton, tensor)
            if self._known[name].non_finite and prod(tensor.dims) > 1:  # one -inf alone is a mask
                self.non_finite[name] = self._known[name].non_finite
        return self._known[name]


def _is_bound(node: Node, position: int) -> bool:
    """Limits of a clip or fills of a border: clamping them changes nothing that half could show."""
    positions = _BOUNDS.get(node.op)
    return positions is not None and (not positions or position in positions)
