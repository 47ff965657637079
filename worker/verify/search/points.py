"""Tries choices of islands: each is planned, and run in emulated half on every sample."""

from collections.abc import Collection
from dataclasses import dataclass, field

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
class Judge:
    """Runs plans in emulated half, and compares their outputs with those of FP32."""

    trial: Trial
    _silent: list[str] | None = None

    def figures(self, graph: Graph, plan: PrecisionPlan) -> tuple[OutputFigures, ...]:
        """Of each output the worst over all samples, without outputs that say nothing. Raises Unverifiable."""
        session = Session(emulate_plan(graph, plan), self.trial.request.source.parent, "model in half emulation")
        found: list[OutputFigures] = []
        for feed, expected in zip(self.trial.feeds, self.trial.expected, strict=True):
            try:
                actual = session.run(feed, self.trial.watchdog)
            except RunFailed as failure:
                raise Unverifiable(f"the model does not run in half emulation: {failure}") from failure
            found += [compare(name, expected[name], actual[name]) for name in expected]
        return self._judged(worst(found))

    def _judged(self, figures: tuple[OutputFigures, ...]) -> tuple[OutputFigures, ...]:
        if self._silent is None:  # FP32 decides it, so once is enough
            self._silent = silent_outputs(self.trial.request.source, figures)
        judged = tuple(figure for figure in figures if figure.name not in self._silent or figure.nonfinite)
        if figures and not judged:
            raise Unverifiable(f"probabilities of {', '.join(self._silent)} are all but zero on these inputs")
        return judged


@dataclass(slots=True)
class Points:
    """All choices that were tried for one plan, none of them twice. `most` bounds how many are."""

    planned: Planned
    facts: WeightFacts
    every: tuple[Candidate, ...]
    judge: Judge
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
            self.judge.trial.progress("trying islands", len(self.tried), self.most)
            graph, plan = self.planned.graph, self._plan(key)
            self.tried[key] = Point(key, plan_cost(graph, plan, self.shapes), self.judge.figures(graph, plan))
        return self.tried[key]

    def cost(self, kept: Collection[int]) -> float:
        """What the choice costs; nothing is run."""
        return plan_cost(self.planned.graph, self._plan(kept), self.shapes)

    def _plan(self, kept: Collection[int]) -> PrecisionPlan:
        options = options_keeping(self.planned.options, self.every, kept)
        return make_plan(self.planned.graph, options, self.planned.measured, self.facts)
