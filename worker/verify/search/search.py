"""The search from end to end: what to convert with instead of mode `auto`, and the report's section about it."""

from dataclasses import dataclass, replace

from worker.graph.dtype import HALF_TYPES
from worker.precision.convert import Measure, plan_model
from worker.precision.planner import make_plan
from worker.precision.report import AutoReport, Recipe
from worker.precision.reporting import Planned
from worker.precision.weight_facts import WeightFacts
from worker.types import ConvertRequest
from worker.verify.search.candidates import candidates
from worker.verify.search.cost import node_cost, plan_cost
from worker.verify.search.hazards import hazards
from worker.verify.search.observe import observe
from worker.verify.search.points import Judge, Points
from worker.verify.search.recipe import options_keeping
from worker.verify.search.report import Account, describe
from worker.verify.search.strategy import Strategy, ordered
from worker.verify.search.types import Observation, Point
from worker.verify.trial import Progress, Trial
from worker.verify.types import Incomparable, Unverifiable, VerifyRequest

_MARGIN = 0.5
"""The share of the allowed deviation that the search may use on its samples; the rest is for other inputs."""

_MOST_POINTS = 8
"""With the run that gives the expected outputs, and the one that observes, ten runs of the model."""

_FALLBACK = "rope"


@dataclass(frozen=True, slots=True)
class Budget:
    """Beyond it the search gives up, and mode rope is what is converted with."""

    seconds: float
    memory_bytes: int
    weight_bytes: int = 2 << 30


def search(
    request: ConvertRequest,
    measure: Measure | None = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> tuple[ConvertRequest, AutoReport]:
    """What to ask the converter instead, and how that was found. `progress` hears (phase, step, of).

    Raises a kind of InvalidModel for a file that cannot be read.
    """
    rope = replace(request, mode=_FALLBACK)
    limits = budget or Budget(request.search_seconds, request.search_memory_bytes)
    try:
        judge = Judge(Trial.of(_samples(rope, limits), progress or _quiet))
        report = _Search(rope, measure, judge, WeightFacts(HALF_TYPES[rope.trunk])).run()
    except (Unverifiable, Incomparable) as why:
        report = AutoReport(
            outcome="fell back",
            reason=f"mode {_FALLBACK}, as the search could not run the model: {why}",
            target_cosine=request.target_cosine,
            recipe=recipe_of(rope),
        )
    return applied(request, report.recipe), report


def applied(request: ConvertRequest, recipe: Recipe) -> ConvertRequest:
    """The request with the recipe's options."""
    return replace(request, **dict(recipe))


def recipe_of(request: ConvertRequest) -> Recipe:
    return Recipe(
        mode=request.mode,
        trunk=request.trunk,
        bounded_attention=request.bounded_attention,
        keep_fp32=request.keep_fp32,
        keep_trunk=request.keep_trunk,
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """`request` is that of mode rope."""

    request: ConvertRequest
    measure: Measure | None
    judge: Judge
    facts: WeightFacts

    def run(self) -> AutoReport:
        account = self._account(self._plan(self.request))
        chosen = self._smallest(account)
        if chosen.fault(account.target) is not None:
            wider = replace(self.request, mode="full")
            full = self._point_of(self._plan(wider), account.seen)
            if full.fault(account.target) is None:
                return describe(account, recipe_of(wider), full, [full])
        options = options_keeping(account.points.planned.options, account.points.every, chosen.kept)
        return describe(account, recipe_of(replace(self.request, keep_trunk=options.keep_trunk)), chosen)

    def _plan(self, request: ConvertRequest) -> Planned:
        return plan_model(request, self.measure, self.facts)

    def _account(self, planned: Planned) -> Account:
        """What observation says of each island; nothing has been tried yet."""
        graph, trial = planned.graph, self.judge.trial
        every = candidates(graph, planned.plan)
        bare = make_plan(graph, options_keeping(planned.options, every, ()), planned.measured, self.facts)
        trial.progress("observing islands", 0, 1)
        seen = observe(graph, bare, every, trial.feeds, self.request.source.parent, trial.watchdog)
        return Account(
            points=Points(planned, self.facts, every, self.judge, seen.shapes, _MOST_POINTS),
            required=hazards(graph, planned.plan.half, every, seen),
            costs={one.number: sum(node_cost(graph, node, seen.shapes) for node in one.nodes) for one in every},
            seen=seen,
            target=self.request.target_cosine,
        )

    def _smallest(self, account: Account) -> Point:
        """All of mode rope where less does not meet the target with a margin."""
        points, aim = account.points, 1 - (1 - account.target) * _MARGIN
        order = ordered(points.every, account.costs, account.seen.drifts, account.required)
        found = Strategy(points, frozenset(account.required), order, aim).smallest()
        return points.at(range(len(points.every))) if found is None else found

    def _point_of(self, planned: Planned, seen: Observation) -> Point:
        """What a plan comes to with all its islands."""
        cost = plan_cost(planned.graph, planned.plan, seen.shapes)
        figures = self.judge.figures(planned.graph, planned.plan)
        return Point(frozenset(range(len(planned.plan.islands))), cost, figures)


def _samples(request: ConvertRequest, budget: Budget) -> VerifyRequest:
    return VerifyRequest(
        source=request.source,
        converted=request.source,
        profiles=request.profiles,
        samples=request.samples,
        target_cosine=request.target_cosine,
        seconds=budget.seconds,
        memory_bytes=budget.memory_bytes,
        weight_bytes=budget.weight_bytes,
    )


def _quiet(_phase: str, _step: int, _of: int) -> None:
    """For callers that do not listen."""
