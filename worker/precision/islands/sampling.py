"""Operators that read coordinates: a half coordinate misses its pixel."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings

_SAMPLERS = frozenset({"GridSample", "RoiAlign", "MaxRoiPool", "AffineGrid", "DeformConv", "NonMaxSuppression"})


@dataclass(frozen=True, slots=True)
class Sampling:
    """Image and grid share one dtype, since TensorRT's parser refuses to mix them."""

    name: str = "sampling"
    modes: frozenset[str] = MINIMAL
    hazard: str = "FP16 coordinates are a pixel off from 2048 on, and fractions long before"

    def find(self, graph: Graph, _around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if node.op in _SAMPLERS and graph.float_inputs(node):
                yield Island(self.name, f"{node.op} reads coordinates", self.hazard, (node,))
