"""The order in which choices are tried: none, all, bisection over what is most worth keeping, then without families.

Candidates are ordered by the squared drift that an island saves for each unit of its cost; errors of many islands add
up in squares. Bisection finds the shortest beginning of that order which meets the target. What it keeps is then tried
without each family, one after the other.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from worker.verify.search.points import Points
from worker.verify.search.types import Candidate, Drift, Point


@dataclass(frozen=True, slots=True)
class Strategy:
    """`required` candidates are part of every choice, `ordered` are the others, the most worth keeping first.

    `aim` is the target cosine, closer to 1 than the user's: samples are not all inputs.
    """

    points: Points
    required: frozenset[int]
    ordered: tuple[Candidate, ...]
    aim: float

    def smallest(self) -> Point | None:
        """The cheapest point found that meets the aim; None where keeping everything does not. Raises Unverifiable."""
        bare = self._first(0)
        if self._passes(bare):
            return bare
        if not self._passes(self._first(len(self.ordered))):
            return None
        return self._without_families(self._bisect())

    def _bisect(self) -> int:
        """The length of the shortest beginning that is known to pass."""
        low, high = 0, len(self.ordered)
        while high - low > 1 and self.points.left:
            middle = (low + high) // 2
            if self._passes(self._first(middle)):
                high = middle
            else:
                low = middle
        return high

    def _without_families(self, length: int) -> Point:
        best = self._first(length)
        for family in self._families(length):
            if not self.points.left:
                break
            members = {one.number for one in self.ordered if one.island.family == family}
            point = self.points.at(best.kept - members)
            if self._passes(point) and point.cost <= best.cost:
                best = point
        return best

    def _families(self, length: int) -> list[str]:
        """Of what is kept, but for the family that the last candidate is of: without that one it fails."""
        kept = [one.island.family for one in self.ordered[: length - 1]]
        last = self.ordered[length - 1].island.family
        return [family for family in dict.fromkeys(kept) if family != last]

    def _first(self, length: int) -> Point:
        return self.points.at(self.required | {one.number for one in self.ordered[:length]})

    def _passes(self, point: Point) -> bool:
        return point.fault(self.aim) is None


def ordered(
    every: Collection[Candidate], costs: Mapping[int, float], drifts: Mapping[int, Drift], required: Collection[int]
) -> tuple[Candidate, ...]:
    """Candidates that are not required, the most worth keeping first; the graph's order decides between equals."""

    def worth(candidate: Candidate) -> float:
        drift = drifts.get(candidate.number)
        return 0.0 if drift is None else drift.relative_l2**2 / max(1.0, costs[candidate.number])

    return tuple(sorted((one for one in every if one.number not in required), key=lambda one: -worth(one)))
