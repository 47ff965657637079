"""What would give nodes another dtype: each option is tried by planning again, so that no advice is a guess."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from glob import escape
from shlex import quote

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.explanation import Option
from worker.precision.opset import first_legal_opset
from worker.precision.plan import Cause, PrecisionPlan
from worker.precision.planner import Options, make_plan
from worker.precision.weight_facts import WeightFacts

_MODES = ("minimal", "rope", "full")


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan to try. `option` is what a user would write; `{name}` stands for the node."""

    option: str
    options: Options


def find_options(
    graph: Graph, plan: PrecisionPlan, options: Options, measured: Mapping[str, float], nodes: Iterable[Node]
) -> dict[int, tuple[Option, ...]]:
    """By node index. Nodes without floats have none."""
    wanted = [node for node in nodes if plan.decisions[node.index].cause is not Cause.NO_FLOATS]
    found: dict[int, list[Option]] = defaultdict(list)
    facts = WeightFacts(plan.half)
    for trial in _trials(plan, options, wanted):
        tried = make_plan(graph, trial.options, measured, facts)
        for node in wanted:
            if tried.decisions[node.index].is_half is not plan.decisions[node.index].is_half:
                found[node.index].append(_option(node, trial, plan, tried))
    for node in wanted:
        found[node.index].extend(_by_opset(graph, plan, node))
    return {index: tuple(changes) for index, changes in found.items()}


def _trials(plan: PrecisionPlan, options: Options, nodes: list[Node]) -> Iterator[Trial]:
    full = [node for node in nodes if not plan.decisions[node.index].is_half]
    half = [node for node in nodes if plan.decisions[node.index].is_half]
    if full:
        yield Trial("--keep-trunk {name}", replace(options, keep_trunk=(*options.keep_trunk, *map(_glob, full))))
    if half:
        yield Trial("--keep-fp32 {name}", replace(options, keep_fp32=(*options.keep_fp32, *map(_glob, half))))
    if options.keep_fp32:
        yield Trial("without --keep-fp32", replace(options, keep_fp32=()))
    if options.keep_trunk:
        yield Trial("without --keep-trunk", replace(options, keep_trunk=()))
    for mode in _MODES:
        if mode != options.mode:
            yield Trial(f"--mode {mode}", replace(options, mode=mode))
    bounded = "--no-bounded-attention" if options.bounded_attention else "without --no-bounded-attention"
    yield Trial(bounded, replace(options, bounded_attention=not options.bounded_attention))


def _glob(node: Node) -> str:
    return escape(node.label)


def _option(node: Node, trial: Trial, plan: PrecisionPlan, tried: PrecisionPlan) -> Option:
    decision = tried.decisions[node.index]
    option = trial.option.replace("{name}", quote(_glob(node)))
    if not decision.is_half:
        return Option(option=option, effect=f"fp32: {decision.reason}")
    hazard = next((island.hazard for island in plan.islands if node in island.nodes), None)
    return Option(option=option, effect=plan.half.name + (f", with its hazard: {hazard}" if hazard else ""))


def _by_opset(graph: Graph, plan: PrecisionPlan, node: Node) -> Iterator[Option]:
    if plan.decisions[node.index].cause is not Cause.ILLEGAL:
        return
    version = first_legal_opset(graph, node, plan.half)
    if version is not None:
        effect = f"{node.op} has a {plan.half.name} form from there on"
        yield Option(option=f"export the model at opset {version} or later", effect=effect)
