"""The order of trials, on choices whose outcome is given by a rule instead of a run."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from worker.precision.islands import Island
from worker.verify.search.report import front
from worker.verify.search.strategy import Strategy, ordered
from worker.verify.search.types import Candidate, Drift, Point
from worker.verify.types import OutputFigures


def candidate(number: int, family: str = "normalization") -> Candidate:
    return Candidate(number, Island(family, f"island {number}", "a hazard", ()))


def point(kept: Collection[int], cost: float, cosine: float, nonfinite: int = 0) -> Point:
    error = math.sqrt(2 * (1 - cosine))
    return Point(frozenset(kept), cost, (OutputFigures("y", cosine, error, 0.0, None, nonfinite),))


@dataclass
class Ruled:
    """Passes where all `needed` candidates are kept; each costs one."""

    needed: frozenset[int]
    most: int = 8
    tried: dict[frozenset[int], Point] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return self.most - len(self.tried)

    def at(self, kept: Collection[int]) -> Point:
        key = frozenset(kept)
        if key not in self.tried:
            self.tried[key] = point(key, len(key), 1.0 if self.needed <= key else 0.5)
        return self.tried[key]


def search(rule: Ruled, every: tuple[Candidate, ...], required: frozenset[int] = frozenset()) -> Point | None:
    return Strategy(rule, required, every, 0.999).smallest()


MANY = tuple(candidate(number) for number in range(64))


@pytest.mark.parametrize("length", [0, 1, 2, 31, 33, 63, 64])
def test_the_shortest_beginning_that_passes_is_found(length: int) -> None:
    found = search(Ruled(frozenset(range(length))), MANY)
    assert found is not None
    assert found.kept == frozenset(range(length))


@pytest.mark.parametrize("needed", [0, 1, 20, 64])
def test_no_more_trials_than_allowed(needed: int) -> None:
    rule = Ruled(frozenset(range(needed)), most=5)
    found = search(rule, MANY)
    assert found is not None
    assert rule.needed <= found.kept
    assert len(rule.tried) <= rule.most


def test_nothing_passes_where_all_is_not_enough() -> None:
    assert search(Ruled(frozenset({99})), MANY) is None


def test_what_is_required_is_always_kept() -> None:
    found = search(Ruled(frozenset({1, 5})), MANY[:4], required=frozenset({5}))
    assert found is not None
    assert found.kept == {0, 1, 5}


def test_a_family_that_nothing_needs_is_given_up() -> None:
    every = (candidate(0), candidate(1, "rotation"), candidate(2, "rotation"), candidate(3))
    found = search(Ruled(frozenset({0, 3})), every)
    assert found is not None
    assert found.kept == {0, 3}


def test_what_saves_much_error_at_little_cost_comes_first() -> None:
    every = (candidate(0), candidate(1), candidate(2), candidate(3))
    drifts = {0: Drift(1e-3), 1: Drift(1e-1), 2: Drift(1e-1)}
    costs = {0: 10.0, 1: 1000.0, 2: 10.0, 3: 1.0}
    assert [one.number for one in ordered(every, costs, drifts, ())] == [2, 1, 0, 3]
    assert [one.number for one in ordered(every, costs, drifts, {2, 3})] == [1, 0]


def test_the_front_leaves_out_what_another_beats() -> None:
    cheap, dear, beaten, infinite = (
        point({1}, 1.0, 0.9),
        point({1, 2}, 3.0, 0.99),
        point({1, 3}, 2.0, 0.8),
        point((), 0.5, 0.95, nonfinite=3),
    )
    assert front([dear, beaten, cheap, infinite]) == [infinite, cheap, dear]
