"""Makes the plan: cores, masks, islands, legality, constants, and what lies between, in that order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from worker.graph.dtype import FLOAT, HALF_TYPES, HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.attention import LONGEST_SAFE_KEYS, AttentionCore, find_cores, keys
from worker.precision.constants import ConstantHazards
from worker.precision.islands import CATALOGUE, Declined, Island, Surroundings
from worker.precision.islands.requests import Requested, matching
from worker.precision.legality import legality
from worker.precision.masks import Masks, plan_masks
from worker.precision.plan import Cause, Core, Decision, PrecisionPlan
from worker.precision.report import Finding
from worker.precision.settle import settle
from worker.precision.weight_facts import WeightFacts

_MASK_HAZARD = "a finite mask value becomes infinite in half, and a fully masked row NaN"


@dataclass(frozen=True, slots=True)
class Options:
    mode: str = "rope"
    trunk: str = "fp16"
    bounded_attention: bool = True
    keep_fp32: tuple[str, ...] = ()
    keep_trunk: tuple[str, ...] = ()

    @property
    def half(self) -> HalfType:
        return HALF_TYPES[self.trunk]


def make_plan(
    graph: Graph, options: Options, measured: Mapping[str, float] | None = None, facts: WeightFacts | None = None
) -> PrecisionPlan:
    """Which dtype each value gets, and why; the graph is only read.

    `measured`: largest magnitudes of values, as far as somebody ran the model in FP32. `facts`: what is known of
    weights; by default all are read.
    """
    half = options.half
    if options.mode == "none":
        options = replace(options, keep_fp32=("*",), keep_trunk=())
    requested = list(Requested(options.keep_fp32).find(graph, Surroundings()))
    kept = {node for island in requested if isinstance(island, Island) for node in island.nodes}
    found = list(find_cores(graph))
    cores = [_plan_core(graph, core, options, kept) for core in found if isinstance(core, AttentionCore)]
    bounded = [core.core for core in cores if core.bounded]
    masks = plan_masks(graph, bounded, half)
    answers = [*requested, *_mask_island(masks), *_islands(graph, options, cores, measured or {})]
    islands, declined = _sort_out(graph, answers, options, bounded)
    declined += [answer for answer in found if isinstance(answer, Declined)]

    claimed, legal = _claim(graph, islands, bounded, half)
    hazards = ConstantHazards(graph, half, facts or WeightFacts(half))
    _claim_constants(graph, claimed, legal, hazards)
    _claim_folded(graph, claimed, hazards.folded)
    _claim_released(graph, claimed, legal, options.keep_trunk)
    decisions = settle(graph, claimed, legal)
    return PrecisionPlan(
        half=half,
        decisions=decisions,
        half_tensors=_half_tensors(graph, decisions),
        islands=tuple(islands),
        cores=tuple(cores),
        declined=tuple(declined),
        findings=tuple(_findings(graph, decisions, hazards, masks)),
        saturate={
            **dict.fromkeys(sorted(hazards.saturated), half.max),
            **dict.fromkeys(sorted(masks.saturate), -half.mask_floor),
        },
        mask_nodes=frozenset(node.index for node in masks.nodes),
        guard=masks.guard,
    )


def _half_tensors(graph: Graph, decisions: dict[int, Decision]) -> frozenset[str]:
    return frozenset(
        slot.name
        for node in graph.nodes
        for slot in node.outputs
        if graph.types.get(slot.name) == FLOAT and slot.variable in decisions[node.index].half
    )


def _plan_core(graph: Graph, core: AttentionCore, options: Options, kept: set[Node]) -> Core:
    """Whether the core is handed to the trunk, and the reason in words."""
    if not options.bounded_attention:
        return Core(core, bounded=False, reason="bounded attention is off")
    if any(node in kept for node in core.nodes):
        return Core(core, bounded=False, reason="keep_fp32 names a node of it")
    blocked = next((reason for node in core.nodes if (reason := legality(graph, node, options.half).reason)), None)
    if blocked is not None and graph.float_inputs(core.softmax):
        return Core(core, bounded=False, reason=blocked)
    count = keys(graph, core)
    if options.trunk == "fp16" and count is not None and count >= LONGEST_SAFE_KEYS:
        return Core(core, bounded=False, reason=f"a sum over {count} keys can overflow a fused FP16 core")
    return Core(core, bounded=True, reason="queries and keys are cast back, so that the fused kernel can fire")


def _mask_island(masks: Masks) -> Iterable[Island]:
    if masks.nodes:
        nodes = tuple(sorted(masks.nodes, key=lambda node: node.index))
        yield Island("mask", "mask arithmetic before an attention core", _MASK_HAZARD, nodes)


def _islands(
    graph: Graph, options: Options, cores: list[Core], measured: Mapping[str, float]
) -> Iterable[Island | Declined]:
    spoken_for = frozenset(node for core in cores if core.bounded for node in core.core.nodes)
    around = Surroundings(spoken_for, options.half.max, options.half.smallest_normal, measured)
    for core in cores:
        if not core.bounded:
            nodes = core.core.nodes[:-1] if len(core.core.nodes) > 1 else core.core.nodes
            yield Island("attention", f"an attention core in FP32: {core.reason}", "it does not fuse", nodes)
    for family in CATALOGUE:
        if options.mode in family.modes:
            yield from family.find(graph, around)


def _sort_out(
    graph: Graph, answers: list[Island | Declined], options: Options, bounded: list[AttentionCore]
) -> tuple[list[Island], list[Declined]]:
    """Each node belongs to the first island that claims it; `keep_trunk` takes nodes out again."""
    named = matching(graph.nodes, options.keep_trunk)
    released = {node for nodes in named.values() for node in nodes}
    taken = {node for core in bounded for node in core.nodes} | released
    islands: list[Island] = []
    for answer in answers:
        if isinstance(answer, Declined):
            continue
        nodes = tuple(node for node in answer.nodes if node not in taken)
        taken.update(nodes)
        if nodes:
            islands.append(Island(answer.family, answer.reason, answer.hazard, nodes))
    declined = [answer for answer in answers if isinstance(answer, Declined)]
    unmatched = (glob for glob, nodes in named.items() if not nodes)
    missed = [Declined("keep_trunk", glob, "no node has such a name or operator type") for glob in unmatched]
    return islands, [*declined, *missed]


def _claim(
    graph: Graph, islands: list[Island], bounded: list[AttentionCore], half: HalfType
) -> tuple[dict[int, Decision], dict[int, frozenset[str]]]:
    claimed: dict[int, Decision] = {}
    legal: dict[int, frozenset[str]] = {}
    for island in islands:
        for node in island.nodes:
            claimed[node.index] = Decision(frozenset(), Cause.ISLAND, f"{island.family}: {island.reason}")
    in_core = {node.index for core in bounded for node in core.nodes}
    for node in graph.nodes:
        if not graph.float_inputs(node) and not graph.float_outputs(node):
            claimed[node.index] = Decision(frozenset(), Cause.NO_FLOATS, "it handles no FP32 value")
            continue
        allowed = legality(graph, node, half)
        legal[node.index] = allowed.variables
        if node.index in claimed:
            continue
        if node.is_a("Constant"):
            claimed[node.index] = Decision(
                frozenset(), Cause.NO_FLOATS, "a constant has the dtype that its reader wants"
            )
        elif allowed.reason is not None:
            claimed[node.index] = Decision(frozenset(), Cause.ILLEGAL, allowed.reason)
        elif node.index in in_core:
            claimed[node.index] = Decision(allowed.variables, Cause.CORE, "bounded attention core")
    return claimed, legal


def _claim_constants(
    graph: Graph, claimed: dict[int, Decision], legal: dict[int, frozenset[str]], hazards: ConstantHazards
) -> None:
    for node in graph.nodes:
        if node.index in claimed or all(slot.name in graph.static for slot in node.outputs):
            continue
        reason = hazards.reason(node, legal[node.index])
        if reason is not None:
            claimed[node.index] = Decision(frozenset(), Cause.CONSTANT, reason)


def _claim_released(
    graph: Graph, claimed: dict[int, Decision], legal: dict[int, frozenset[str]], keep_trunk: tuple[str, ...]
) -> None:
    """Nodes of `keep_trunk` are half even between FP32 values, unless half cannot hold what they read."""
    for node in (node for nodes in matching(graph.nodes, keep_trunk).values() for node in nodes):
        if node.index not in claimed:
            claimed[node.index] = Decision(legal[node.index], Cause.TRUNK, "asked for by keep_trunk")


def _claim_folded(graph: Graph, claimed: dict[int, Decision], folded: Iterable[str]) -> None:
    pending = list(folded)
    while pending:
        node = graph.producer(pending.pop())
        if node is not None and node.index not in claimed:
            claimed[node.index] = Decision(frozenset(), Cause.BETWEEN, "an expression of constants, computed in FP32")
            pending.extend(name for name in node.proto.input if name)


def _findings(
    graph: Graph, decisions: dict[int, Decision], hazards: ConstantHazards, masks: Masks
) -> Iterable[Finding]:
    for node in graph.nodes:
        decision = decisions[node.index]
        if decision.cause in (Cause.ILLEGAL, Cause.CONSTANT):
            yield Finding(kind=decision.cause.value, where=node.label, detail=decision.reason)
    for name, count in hazards.non_finite.items():
        yield Finding(kind="non-finite-weights", where=name, detail=f"{count} values are infinite or not a number")
    for name in sorted(masks.saturate | hazards.saturated):
        yield Finding(kind="saturated", where=name, detail="clamped into the range of the trunk dtype")
    for name in sorted(masks.guard):
        yield Finding(kind="guarded", where=name, detail="a mask of unknown range is clamped where it is cast")
    if graph.inferred.failure is not None:
        yield Finding(kind="shape-inference", where="graph", detail=graph.inferred.failure)
