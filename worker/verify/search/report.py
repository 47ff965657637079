"""What the report says about a search."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from worker.precision.report import AutoReport, CandidateReport, FrontPoint, Recipe
from worker.verify.search.points import Points
from worker.verify.search.types import Candidate, Observation, Point

_OTHER_RUNS = 2
"""The one that gives the expected outputs, and the one that observes."""


@dataclass(frozen=True, slots=True)
class Account:
    """What the search went through. `required`: by candidate number, why it could not be given up."""

    points: Points
    required: Mapping[int, str]
    costs: Mapping[int, float]
    seen: Observation
    target: float

    @property
    def runs(self) -> int:
        return _OTHER_RUNS + len(self.points.tried) + bool(self.points.planned.measured)


def describe(account: Account, recipe: Recipe, chosen: Point, more: Iterable[Point] = ()) -> AutoReport:
    """`chosen` is what the recipe gives; `more` are points of other modes."""
    points, others = account.points, tuple(more)
    fault = chosen.fault(account.target)
    return AutoReport(
        outcome="met" if fault is None else "missed",
        reason=_reason(account, recipe, chosen, fault),
        target_cosine=account.target,
        recipe=recipe,
        cosine=chosen.cosine,
        cost=chosen.cost,
        rope_cost=points.cost(range(len(points.every))),
        runs=account.runs + len(others),
        front=tuple(_front_point(point, account.target) for point in front([*points.tried.values(), *others])),
        candidates=tuple(_candidate(account, one, chosen.kept) for one in points.every),
    )


def front(points: Collection[Point]) -> list[Point]:
    """Those that no other beats in both: from the cheapest to the most accurate."""
    found: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost, one.nonfinite, -one.cosine)):
        if not found or (point.nonfinite, -point.cosine) < (found[-1].nonfinite, -found[-1].cosine):
            found.append(point)
    return found


def _reason(account: Account, recipe: Recipe, chosen: Point, fault: str | None) -> str:
    if fault is not None:
        return f"every island of mode rope is kept, and yet {fault}"
    if recipe.mode != "rope":
        return f"mode rope misses the target, mode {recipe.mode} meets it"
    return f"{len(chosen.kept)} of {len(account.points.every)} islands of mode rope are kept"


def _front_point(point: Point, target: float) -> FrontPoint:
    return FrontPoint(
        islands=len(point.kept),
        cost=point.cost,
        cosine=point.cosine,
        relative_l2=point.relative_l2,
        nonfinite=point.nonfinite,
        passed=point.fault(target) is None,
    )


def _candidate(account: Account, one: Candidate, kept: Collection[int]) -> CandidateReport:
    drift = account.seen.drifts.get(one.number)
    is_kept = one.number in kept
    return CandidateReport(
        family=one.island.family,
        island=one.island.reason,
        nodes=len(one.nodes),
        cost=account.costs[one.number],
        drift=drift.relative_l2 if drift is not None and isfinite(drift.relative_l2) else None,
        kept=is_kept,
        reason=account.required.get(one.number) or ("the target needs it" if is_kept else "the target is met without"),
    )
