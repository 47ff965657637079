"""Sums over many elements outside norms: pooling to one pixel, means over a sequence, running sums."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings

_REDUCTIONS = frozenset({"ReduceMean", "ReduceSum", "ReduceL1", "ReduceProd", "ReduceSumSquare", "ReduceL2"})


@dataclass(frozen=True, slots=True)
class LongReduction:
    """Reductions over at least `longest` elements, or over a number that is not known."""

    name: str = "long reduction"
    modes: frozenset[str] = MINIMAL
    hazard: str = "a half accumulator overflows or stops growing; the count itself may not fit"
    longest: int = 1024

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if node in around.core or not graph.float_inputs(node):
                continue
            if node.is_a("CumSum", "ReduceProd", "CumProd"):
                yield Island(self.name, f"{node.op} has no bound", self.hazard, (node,))
                continue
            if node.op not in _REDUCTIONS and not node.is_a(
                "GlobalAveragePool", "AveragePool", "GlobalLpPool", "LpPool"
            ):
                continue
            count = _count(graph, node)
            if count is not None and count < self.longest:
                yield Declined(self.name, node.label, f"it sums {count} elements, fewer than {self.longest}")
            else:
                reason = f"{node.op} over {'an unknown number of' if count is None else count} elements"
                yield Island(self.name, reason, self.hazard, (node,))


def _count(graph: Graph, node: Node) -> int | None:
    """How many elements go into one sum; None if that is not known."""
    if node.is_a("AveragePool", "LpPool"):
        return int(prod(node.attribute("kernel_shape", [1])))
    shape = graph.shape(node.input(0))
    if shape is None:
        return None
    axes = _axes(graph, node, len(shape))
    if axes is None or any(shape[axis] is None for axis in axes):
        return None
    return prod(shape[axis] or 0 for axis in axes)


def _axes(graph: Graph, node: Node, rank: int) -> list[int] | None:
    if node.is_a("GlobalAveragePool", "GlobalLpPool"):
        return list(range(2, rank))
    axes = node.attribute("axes")
    if axes is None and node.input(1):
        values = graph.array(node.input(1))
        if values is None:
            return None
        axes = [int(value) for value in values.reshape(-1)]
    if not axes:
        return [] if node.attribute("noop_with_empty_axes", 0) else list(range(rank))
    return [axis % rank for axis in axes] if rank else []
