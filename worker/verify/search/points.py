"""Tries choices of islands: each is planned, and run in emulated half on every sample."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from worker.graph.graph import Graph
from worker.precision.plan import PrecisionPlan
from worker.precision.planner import make_plan
from worker.precision.reporting import Planned
from worker.precision.weight_facts import WeightFacts
from worker.verify.check import silent_outputs
from worker.verify.compare import compare, worst
from worker.verify.search.cost import Shapes, plan_cost
from worker.verify.search.emulation import emulate_plan
from worker.verify.search.recipe import options_keeping
from worker.verify.search.types import Candidate, Point
from worker.verify.session import RunFailed, Session
from worker.verify.trial import Trial
from worker.verify.types import OutputFigures, Unverifiable


@dataclass(slots=True)
class Points:
    """All choices that were tried for one plan, none of them twice. `most` bounds how many are."""

    planned: Planned
    facts: WeightFacts
    every: tuple[Candidate, ...]
    trial: Trial
    shapes: Shapes
    most: int
    tried: dict[frozenset[int], Point] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """How many more may be tried."""
        return self.most - len(self.tried)

    def at(self, kept: Collection[int]) -> Point:
        """The point of the choice that keeps these candidates. Raises Unverifiable."""
        key = frozenset(kept)
        if key not in self.tried:
            figures = run_plan(self._graph, self._plan(key), self.trial)
            self.tried[key] = Point(key, self.cost(key), figures)
        return self.tried[key]

    def cost(self, kept: Collection[int]) -> float:
        """What the choice costs; nothing is run."""
        return plan_cost(self._graph, self._plan(kept), self.shapes)

    def _plan(self, kept: Collection[int]) -> PrecisionPlan:
        options = options_keeping(self.planned.options, self.every, kept)
        return make_plan(self._graph, options, self.planned.measured, self.facts)

    @property
    def _graph(self) -> Graph:
        return self.planned.graph


def run_plan(graph: Graph, plan: PrecisionPlan, trial: Trial) -> tuple[OutputFigures, ...]:
    """How far the plan's outputs are from FP32, the worst over all samples. Raises Unverifiable."""
    source = trial.request.source
    session = Session(emulate_plan(graph, plan), source.parent, "model in half emulation")
    figures: list[OutputFigures] = []
    for feed, expected in zip(trial.feeds, trial.expected, strict=True):
        try:
            actual = session.run(feed, trial.watchdog)
        except RunFailed as failure:
            raise Unverifiable(f"the model does not run in half emulation: {failure}") from failure
        figures += [compare(name, expected[name], actual[name]) for name in expected]
    return _judged(source, worst(figures))


def _judged(source: Path, figures: tuple[OutputFigures, ...]) -> tuple[OutputFigures, ...]:
    """Without outputs that say nothing on these samples."""
    silent = silent_outputs(source, figures)
    judged = tuple(figure for figure in figures if figure.name not in silent or figure.nonfinite)
    if figures and not judged:
        raise Unverifiable(f"probabilities of {', '.join(silent)} are all but zero on these inputs")
    return judged
