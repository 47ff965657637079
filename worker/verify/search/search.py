"""The search from end to end: what to convert with instead of mode `auto`, and the report's section about it."""

from dataclasses import dataclass, replace
from pathlib import Path

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
from worker.verify.trial import Trial
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
    request: ConvertRequest, measure: Measure | None = None, budget: Budget | None = None
) -> tuple[ConvertRequest, AutoReport]:
    """What to ask the converter instead, and how that was found.

    Raises a kind of InvalidModel for a file that cannot be read.
    """
    rope = replace(request, mode=_FALLBACK)
    try:
        report = _search(rope, measure, budget or Budget(request.search_seconds, request.search_memory_bytes))
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


def _search(request: ConvertRequest, measure: Measure | None, budget: Budget) -> AutoReport:
    trial = Trial.of(_samples(request, budget), _quiet)
    judge = Judge(trial)
    facts = WeightFacts(HALF_TYPES[request.trunk])
    planned = plan_model(request, measure, facts)
    graph, target = planned.graph, request.target_cosine
    every = candidates(graph, planned.plan)
    bare = make_plan(graph, options_keeping(planned.options, every, ()), planned.measured, facts)
    seen = observe(graph, bare, every, trial.feeds, _folder(request), trial.watchdog)

    required = hazards(graph, planned.plan.half, every, seen)
    costs = {one.number: sum(node_cost(graph, node, seen.shapes) for node in one.nodes) for one in every}
    order = ordered(every, costs, seen.drifts, required)
    points = Points(planned, facts, every, judge, seen.shapes, _MOST_POINTS)
    found = Strategy(points, frozenset(required), order, 1 - (1 - target) * _MARGIN).smallest()
    account = Account(points, required, costs, seen, target)
    chosen = points.at(range(len(every))) if found is None else found
    if chosen.fault(target) is not None:
        wider = replace(request, mode="full")
        full = _point_of(plan_model(wider, measure, facts), judge, seen)
        if full.fault(target) is None:
            return describe(account, recipe_of(wider), full, [full])
    options = options_keeping(planned.options, every, chosen.kept)
    return describe(account, recipe_of(replace(request, keep_trunk=options.keep_trunk)), chosen)


def _point_of(planned: Planned, judge: Judge, seen: Observation) -> Point:
    """What a plan comes to with all its islands."""
    cost = plan_cost(planned.graph, planned.plan, seen.shapes)
    return Point(frozenset(range(len(planned.plan.islands))), cost, judge.figures(planned.graph, planned.plan))


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


def _folder(request: ConvertRequest) -> Path:
    return request.source.parent


def _quiet(_phase: str, _step: int, _of: int) -> None:
    """A conversion is one step to those who watch it."""
