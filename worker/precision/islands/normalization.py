"""Norms written out: RMSNorm, LayerNorm, GroupNorm, InstanceNorm, BatchNorm, L2 and weight norm, cosine attention.

What they have in common is the dataflow, whatever the spelling: values are squared and summed; from the sum comes a
*statistic*, which is joined only by constants and other statistics (eps, root, reciprocal, clip); the statistic
divides or multiplies a full-size value; constants scale and shift the result.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings, ordered
from worker.precision.islands.dataflow import after_movement, before_movement
from worker.precision.ops import MOVEMENT, SUMS

_SUM_OF_SQUARES = frozenset({"ReduceL2", "ReduceSumSquare"})
_STATISTIC_OPS = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Sqrt",
        "Pow",
        "Reciprocal",
        "Max",
        "Min",
        "Clip",
        "Neg",
        "Abs",
        "Cast",
        "Where",
        "Sum",
    }
) | (MOVEMENT - {"Gather", "GatherND", "GatherElements"})
_JOINS = frozenset({"Mul", "Div", "Add", "Sub"})
_AFFINE_STEPS = 3


@dataclass(frozen=True, slots=True)
class DecomposedNorm:
    """Every sum of squares, with the statistic made of it and the values that it scales."""

    name: str = "normalization"
    modes: frozenset[str] = MINIMAL
    hazard: str = "squares overflow FP16 from 256 on, and a small eps rounds to zero"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        taken: set[Node] = set()
        sums = _SquaredSums(graph)
        for node in graph.nodes:
            if node in taken or node in around.core:
                continue
            source = _summed_squares(graph, node)
            if source is None:
                continue
            found = _grow(graph, node, source, sums) - around.core
            taken |= found
            kind = "mean of squares" if node.is_a("ReduceMean") else "sum of squares"
            yield Island(self.name, f"{kind} of {source!r}, and the scaling by it", self.hazard, ordered(found))


def squared(graph: Graph, node: Node) -> str | None:
    """The value that the node squares."""
    if node.is_a("Mul") and node.input(0) == node.input(1) and graph.is_float(node.input(0)):
        return node.input(0)
    if node.is_a("Pow") and graph.scalar(node.input(1)) == 2.0 and graph.is_float(node.input(0)):
        return node.input(0)
    return None


def _summed_squares(graph: Graph, node: Node) -> str | None:
    """The value whose squares the node sums up."""
    if node.op in _SUM_OF_SQUARES and graph.is_float(node.input(0)):
        return node.input(0)
    if node.op not in SUMS:
        return None
    maker = graph.producer(before_movement(graph, node.input(0)))
    return squared(graph, maker) if maker is not None else None


def _grow(graph: Graph, reduction: Node, source: str, sums: "_SquaredSums") -> set[Node]:
    found = {reduction}
    if reduction.op not in _SUM_OF_SQUARES:
        found |= _path_down(graph, source, reduction)
    origin = before_movement(graph, source)
    seeds = [reduction, *_centre(graph, origin, found), *sums.of(origin)]
    statistics = _statistics(graph, seeds)
    found |= statistics.keys() - {node for node in statistics if node in found}
    for node in list(statistics):
        for joined in _joins(graph, node, statistics):
            found |= _with_affine(graph, joined, statistics)
    return found


def _path_down(graph: Graph, source: str, reduction: Node) -> set[Node]:
    """The square, and the movement between it and the reduction."""
    found: set[Node] = set()
    name = reduction.input(0)
    while name != source:
        node = graph.producer(name)
        if node is None:
            break
        found.add(node)
        name = node.input(0)
    return found


def _centre(graph: Graph, origin: str, found: set[Node]) -> list[Node]:
    """LayerNorm's `x - mean(x)` before the square: adds the subtraction, and gives the mean as a statistic."""
    minus = graph.producer(origin)
    if minus is None or not minus.is_a("Sub"):
        return []
    sides = [before_movement(graph, name) for name in (minus.input(0), minus.input(1))]
    for side, other in (sides, sides[::-1]):
        mean = graph.producer(side)
        if mean is not None and mean.op in SUMS and before_movement(graph, mean.input(0)) == other:
            found |= {minus, mean}
            return [mean]
    return []


@dataclass(slots=True)
class _SquaredSums:
    """Other sums of the same value: the mean in `E[x^2] - E[x]^2`, but only where a square of it is subtracted.

    Many norms may read one value, so its readers are looked through once.
    """

    graph: Graph
    _known: dict[str, list[Node]] = field(default_factory=dict)

    def of(self, origin: str) -> list[Node]:
        if origin not in self._known:
            self._known[origin] = [node for node, _ in after_movement(self.graph, origin) if self._is_one(node)]
        return self._known[origin]

    def _is_one(self, node: Node) -> bool:
        return node.op in SUMS and any(squared(self.graph, reader) for reader in self.graph.consumers(node.output))


def _statistics(graph: Graph, seeds: list[Node]) -> dict[Node, None]:
    """All nodes computed from the reductions and constants alone. Ordered."""
    values = {name for node in seeds for name in graph.float_outputs(node)}
    nodes = dict.fromkeys(seeds)
    pending = list(values)
    while pending:
        for node in graph.consumers(pending.pop()):
            inputs = graph.float_inputs(node)
            if node in nodes or node.op not in _STATISTIC_OPS:
                continue
            if all(name in values or name in graph.static for name in inputs):
                nodes[node] = None
                values.update(graph.float_outputs(node))
                pending.extend(graph.float_outputs(node))
    return nodes


def _joins(graph: Graph, node: Node, statistics: dict[Node, None]) -> list[Node]:
    """Nodes where a statistic meets a full-size value."""
    return [
        reader
        for name in graph.float_outputs(node)
        for reader in graph.consumers(name)
        if reader.op in _JOINS and reader not in statistics
    ]


def _with_affine(graph: Graph, joined: Node, statistics: dict[Node, None]) -> set[Node]:
    """The join, and the scaling and shifting by constants or statistics that follow it."""
    found, node = {joined}, joined
    for _ in range(_AFFINE_STEPS):
        uses = graph.uses(node.output)
        if len(uses) != 1 or uses[0].node.op not in _JOINS:
            break
        reader = uses[0].node
        if not all(name == node.output or _is_known(graph, name, statistics) for name in graph.float_inputs(reader)):
            break
        node = reader
        found.add(node)
    return found


def _is_known(graph: Graph, name: str, statistics: dict[Node, None]) -> bool:
    return name in graph.static or graph.producer(name) in statistics
