"""Constants that the trunk dtype cannot hold: too large, or so small that rounding takes them away."""

from dataclasses import dataclass, field
from math import prod

from worker.graph.dtype import FLOAT, HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.graph.weights import Statistics, array_statistics
from worker.precision.static_values import static_value
from worker.precision.weight_facts import LARGEST_LOSS, WeightFacts

_BOUNDS: dict[str, frozenset[int]] = {
    "Clip": frozenset({1, 2}),
    "Pad": frozenset({2}),
    "Max": frozenset(),
    "Min": frozenset(),
}


@dataclass(slots=True)
class ConstantHazards:
    """Looks at each constant once. `saturated` collects bounds that are clamped to the half range instead; `folded`
    expressions of constants that half holds, though not what goes into them: they are computed in FP32."""

    graph: Graph
    half: HalfType
    facts: WeightFacts
    saturated: set[str] = field(default_factory=set)
    folded: set[str] = field(default_factory=set)
    non_finite: dict[str, int] = field(default_factory=dict)
    _known: dict[str, Statistics] = field(default_factory=dict)
    _hazards: dict[str, str | None] = field(default_factory=dict)
    _fitting: dict[str, bool] = field(default_factory=dict)

    def reason(self, node: Node, variables: frozenset[str]) -> str | None:
        """Why the node must stay FP32; None when each constant that it would read in half can be rounded."""
        for slot in node.inputs:
            if slot.variable not in variables or slot.name not in self.graph.static:
                continue
            if self.graph.types.get(slot.name) != FLOAT:
                continue
            for name in self._hazardous(slot.name, every=_is_bound(node, slot.index)):
                found = self._reason(node, slot.index, name)
                if found is None:
                    continue
                if name == slot.name or not self._fits(slot.name):
                    return found
                self.folded.add(slot.name)
        return None

    def _fits(self, name: str) -> bool:
        """Whether half holds what an expression of constants gives, whatever goes into it."""
        if name not in self._fitting:
            value = static_value(self.graph, name)
            facts = None if value is None else array_statistics(value, self.half)
            self._fitting[name] = facts is not None and facts.max_abs <= self.half.max and facts.lost <= LARGEST_LOSS
        return self._fitting[name]

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

    def _hazardous(self, name: str, every: bool) -> list[str]:
        """Constants that half cannot hold, of those that a static value is computed from: the first, or every one."""
        first = self._first_hazard(name)
        if first is None or not every:
            return [] if first is None else [first]
        found, pending, seen = [], [name], {name}
        while pending:
            value = pending.pop()
            if self.graph.weight(value) is not None:
                found.append(value)
            fresh = [one for one in self._operands(value) if one not in seen and self._hazards[one] is not None]
            seen.update(fresh)
            pending.extend(fresh)
        return found

    def _first_hazard(self, name: str) -> str | None:
        """Each static value is looked at once, however many read it and however long the way to it is."""
        pending = [name]
        while pending:
            value = pending[-1]
            operands = self._operands(value)
            unknown = [one for one in operands if one not in self._hazards]
            if unknown and value not in self._hazards:
                pending.extend(unknown)
                continue
            pending.pop()
            if value not in self._hazards:
                own = value if self._is_hazard(value) else None
                self._hazards[value] = own or next((found for one in operands if (found := self._hazards[one])), None)
        return self._hazards[name]

    def _operands(self, name: str) -> list[str]:
        """What a static value is computed from; nothing for a constant."""
        node = self.graph.producer(name) if self.graph.weight(name) is None else None
        return [slot.name for slot in node.inputs if slot.name] if node is not None else []

    def _is_hazard(self, name: str) -> bool:
        if self.graph.weight(name) is None or self.graph.types.get(name) != FLOAT:
            return False
        facts = self._statistics(name)
        return facts.max_abs > self.half.max or facts.lost > LARGEST_LOSS

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
