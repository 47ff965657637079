"""Quantised parts: what reads dequantised values runs in INT8 or FP8, and a Cast in between would take that away."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings
from worker.precision.islands.dataflow import before_movement

_OPERANDS = 2


@dataclass(frozen=True, slots=True)
class Quantized:
    """Nodes whose operands are all dequantised, so that TensorRT finds the pattern as it was exported."""

    name: str = "quantized"
    modes: frozenset[str] = MINIMAL
    hazard: str = "a cast between DequantizeLinear and its reader keeps the quantised kernel from being used"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if node in around.core or node.is_a("DequantizeLinear", "QuantizeLinear"):
                continue
            operands = graph.float_inputs(node)[:_OPERANDS]  # a bias need not be quantised
            if operands and all(_is_dequantized(graph, name) for name in operands):
                yield Island(self.name, f"{node.op} of dequantised values", self.hazard, (node,))


def _is_dequantized(graph: Graph, name: str) -> bool:
    maker: Node | None = graph.producer(before_movement(graph, name))
    return maker is not None and maker.is_a("DequantizeLinear")
