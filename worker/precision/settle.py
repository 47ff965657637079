"""Decides the nodes that no rule has claimed: the trunk's, and those that merely lie between FP32 values.

Two passes, forward and backward, each one look at every node. A node stays FP32 if all that it reads is FP32 and
all that reads it wants FP32; then casts around it would only round. For arithmetic that must hold on account of
islands on both sides; a node that only moves values also follows FP32 inputs and outputs of the model. Arithmetic on
one activation whose every reader wants FP32 stays FP32 too: its one cast is then before it instead of after it.
"""

from collections.abc import Mapping
from enum import IntEnum

from worker.graph.dtype import FLOAT
from worker.graph.graph import Graph
from worker.graph.node import Node, Slot
from worker.precision.ops import ADAPTIVE, DENSE, EXACT
from worker.precision.plan import Cause, Decision

Decisions = dict[int, Decision]
Legal = Mapping[int, frozenset[str]]

_LONGEST_TAIL = 8
"""A few steps before an FP32 reader cost nothing beside their cast; a long chain of them is the trunk's."""

_SOURCES = frozenset({"Cast", "CastLike", "ConstantOfShape", "OneHot"})
_BETWEEN = Decision(frozenset(), Cause.BETWEEN, "all that it reads and feeds is FP32")
_LAST_STEP = Decision(frozenset(), Cause.BETWEEN, "all that it feeds is FP32, so the cast comes before it")


class Pull(IntEnum):
    """How strongly a neighbour speaks for FP32."""

    HALF = 0
    SOFT = 1  # a public FP32 input or output
    HARD = 2  # an island


def settle(graph: Graph, claimed: Mapping[int, Decision], legal: Legal) -> Decisions:
    """A decision for every node; `claimed` ones stay. `legal`: variables that may be half, for nodes not claimed."""
    forward = _forward(graph, claimed)
    backward = _backward(graph, claimed, forward)
    decisions = dict(claimed)
    for node in graph.nodes:
        if node.index in decisions:
            continue
        if backward[node.index] is Pull.HALF:
            decisions[node.index] = Decision(legal[node.index], Cause.TRUNK, "trunk")
        elif forward[node.index] is Pull.HALF and not _is_static(graph, node):
            decisions[node.index] = _LAST_STEP
        else:
            decisions[node.index] = _BETWEEN
    _follow(graph, decisions, legal)
    return decisions


def _forward(graph: Graph, claimed: Mapping[int, Decision]) -> dict[int, Pull]:
    pulls: dict[int, Pull] = {}
    for node in graph.nodes:
        decision = claimed.get(node.index)
        if decision is not None:
            pulls[node.index] = Pull.HALF if decision.is_half else Pull.HARD
            continue
        found = [_source(graph, name, pulls) for name in graph.float_inputs(node) if name not in graph.static]
        pulls[node.index] = _passed(node, min(found, default=Pull.HARD if node.op in _SOURCES else Pull.SOFT))
    return pulls


def _source(graph: Graph, name: str, pulls: dict[int, Pull]) -> Pull:
    node = graph.producer(name)
    return Pull.SOFT if node is None else pulls.get(node.index, Pull.HALF)


def _backward(graph: Graph, claimed: Mapping[int, Decision], forward: Mapping[int, Pull]) -> dict[int, Pull]:
    """What readers ask of each node's results; HALF where the node will not be FP32 in the end.

    Of a static value FP32 serves both sides, so the strongest wish counts.
    """
    pulls: dict[int, Pull] = {}
    tails: dict[int, int] = {}
    for node in reversed(graph.nodes):
        wishes = [
            _wish(graph, use.node, use.node.inputs[use.position], claimed, pulls)
            for name in graph.float_outputs(node)
            for use in graph.uses(name)
        ]
        found: list[Pull] = [wish for wish in wishes if wish is not None]
        if any(graph.is_output(name) for name in graph.float_outputs(node)):
            found.append(Pull.SOFT)
        if _is_static(graph, node):
            pulls[node.index] = max(found, default=Pull.HALF)
        elif _is_single_step(graph, node):
            readers = (tails.get(reader.index, 0) for reader in graph.consumers(node.output))
            tails[node.index] = 1 + max(readers, default=0)
            pulls[node.index] = min(found, default=Pull.HALF) if tails[node.index] <= _LONGEST_TAIL else Pull.HALF
        elif forward[node.index] is Pull.HALF:
            pulls[node.index] = Pull.HALF
        else:
            pulls[node.index] = _passed(node, min(found, default=Pull.HARD))
    return pulls


def _wish(
    graph: Graph, reader: Node, slot: Slot, claimed: Mapping[int, Decision], pulls: dict[int, Pull]
) -> Pull | None:
    """None: the reader takes either dtype."""
    if _takes_either(graph, reader):
        return None
    decision = claimed.get(reader.index)
    if decision is None:
        return pulls.get(reader.index, Pull.SOFT)
    return Pull.HALF if slot.variable in decision.half else Pull.HARD


def _passed(node: Node, pull: Pull) -> Pull:
    """Movement hands on what it gets; dense work ends it; arithmetic hands on only what islands want."""
    if node.op in DENSE:
        return Pull.HALF
    if node.op in EXACT or node.op in _SOURCES:
        return pull
    return pull if pull is Pull.HARD else Pull.HALF


def _is_static(graph: Graph, node: Node) -> bool:
    return all(slot.name in graph.static for slot in node.outputs if slot.name)


def _is_single_step(graph: Graph, node: Node) -> bool:
    """Arithmetic on one activation, and constants."""
    if node.op in DENSE or node.op in EXACT or node.op in _SOURCES or len(node.outputs) != 1:
        return False
    inputs = {name for name in graph.float_inputs(node) if name not in graph.static}
    return len(inputs) == 1 and inputs <= graph.dense


def _takes_either(graph: Graph, node: Node) -> bool:
    return node.op in ADAPTIVE or (node.is_a("Cast") and graph.types.get(node.output) != FLOAT)


def _follow(graph: Graph, decisions: Decisions, legal: Legal) -> None:
    """Readers that take either dtype read what is there."""
    for node in graph.nodes:
        if not _takes_either(graph, node) or not graph.is_float(node.input(0)):
            continue
        maker = graph.producer(node.input(0))
        slot = next((slot for slot in maker.outputs if slot.name == node.input(0)), None) if maker else None
        is_half = maker is not None and slot is not None and slot.variable in decisions[maker.index].half
        half = legal.get(node.index, frozenset()) if is_half else frozenset()
        decisions[node.index] = Decision(half, Cause.TRUNK if half else Cause.BETWEEN, "it reads either dtype")
