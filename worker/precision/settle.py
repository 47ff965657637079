"""Decides the nodes that no rule has claimed: the trunk's, and those that merely lie between FP32 values.

Two passes, forward and backward, each one look at every node. A node stays FP32 if all that it reads is FP32 and
all that reads it wants FP32; then casts around it would only round. For arithmetic that must hold on account of
islands on both sides; a node that only moves values also follows FP32 inputs and outputs of the model.
"""

from collections.abc import Mapping
from enum import IntEnum

from worker.graph.dtype import FLOAT
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.ops import ADAPTIVE, DENSE, EXACT
from worker.precision.plan import Cause, Decision

_SOURCES = frozenset({"Cast", "CastLike", "ConstantOfShape", "OneHot"})


class Pull(IntEnum):
    """How strongly a neighbour speaks for FP32."""

    HALF = 0
    SOFT = 1  # a public FP32 input or output
    HARD = 2  # an island


def settle(graph: Graph, claimed: Mapping[int, Decision], legal: Mapping[int, frozenset[str]]) -> dict[int, Decision]:
    """A decision for every node; `claimed` ones stay. `legal`: variables that may be half, for nodes not claimed."""
    forward = _forward(graph, claimed)
    backward = _backward(graph, claimed, forward)
    decisions = dict(claimed)
    for node in graph.nodes:
        if node.index in decisions:
            continue
        if _stays(graph, node, forward[node.index], backward[node.index]):
            decisions[node.index] = Decision(frozenset(), Cause.BETWEEN, "all that it reads and feeds is FP32")
        else:
            decisions[node.index] = Decision(legal[node.index], Cause.TRUNK, "trunk")
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


def _backward(graph: Graph, claimed: Mapping[int, Decision], forward: dict[int, Pull]) -> dict[int, Pull]:
    pulls: dict[int, Pull] = {}
    for node in reversed(graph.nodes):
        found = [
            _wish(graph, use.node, use.node.inputs[use.position].variable, claimed, pulls)
            for name in graph.float_outputs(node)
            for use in graph.uses(name)
        ]
        found = [pull for pull in found if pull is not None]
        if any(graph.is_output(name) for name in graph.float_outputs(node)):
            found.append(Pull.SOFT)
        if _is_static(graph, node):
            pulls[node.index] = max(found, default=Pull.HALF)  # a constant in FP32 serves both sides
        else:
            pulls[node.index] = _passed(node, min(found, default=Pull.HARD))
    return pulls


def _wish(
    graph: Graph, reader: Node, variable: str | None, claimed: Mapping[int, Decision], pulls: dict[int, Pull]
) -> Pull | None:
    """None: the reader takes either dtype."""
    if reader.op in ADAPTIVE or (reader.is_a("Cast") and not graph.float_outputs(reader)):
        return None
    decision = claimed.get(reader.index)
    if decision is None:
        return pulls.get(reader.index, Pull.SOFT)
    return Pull.HALF if variable in decision.half else Pull.HARD


def _passed(node: Node, pull: Pull) -> Pull:
    """Movement hands on what it gets; dense work ends it; arithmetic hands on only what islands want."""
    if node.op in DENSE:
        return Pull.HALF
    if node.op in EXACT or node.op in _SOURCES:
        return pull
    return pull if pull is Pull.HARD else Pull.HALF


def _is_static(graph: Graph, node: Node) -> bool:
    return all(slot.name in graph.static for slot in node.outputs if slot.name)


def _stays(graph: Graph, node: Node, forward: Pull, backward: Pull) -> bool:
    if _is_static(graph, node):
        return backward >= Pull.SOFT
    return forward >= Pull.SOFT and backward >= Pull.SOFT


def _follow(graph: Graph, decisions: dict[int, Decision], legal: Mapping[int, frozenset[str]]) -> None:
    """Readers that take either dtype read what is there."""
    for node in graph.nodes:
        if node.op not in ADAPTIVE and not (node.is_a("Cast") and graph.types.get(node.output) != FLOAT):
            continue
        maker = graph.producer(node.input(0))
        slot = next((slot for slot in maker.outputs if slot.name == node.input(0)), None) if maker else None
        is_half = maker is not None and slot is not None and slot.variable in decisions[maker.index].half
        half = legal.get(node.index, frozenset()) if is_half else frozenset()
        decisions[node.index] = Decision(half, Cause.TRUNK if half else Cause.BETWEEN, "it reads either dtype")
