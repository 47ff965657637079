"""Apply-rotary with cosines and sines that are constants: two tables whose squares add up to one.

a * cos + rotated(a) * sin        a * cos - b * sin
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import ROPE, Declined, Island, Surroundings, ordered
from worker.precision.islands.dataflow import before_movement

_LARGEST_TABLE = 16 << 20
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class TabledRotation:
    """A sum or difference of two products, one with a table of cosines and one with that of the sines."""

    name: str = "rotation"
    modes: frozenset[str] = ROPE
    hazard: str = "rounding the rotation moves every position a little, at every layer"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        pairs: dict[tuple[str, str], bool] = {}
        for node in graph.nodes:
            if node in around.core or not node.is_a("Add", "Sub"):
                continue
            products = [maker for name in graph.float_inputs(node) if (maker := graph.producer(name)) is not None]
            tables = [_table(graph, product) for product in products if product.is_a("Mul")]
            if len(tables) != 2 or tables[0] is None or tables[1] is None:
                continue
            pair = (tables[0], tables[1])
            if pair not in pairs:
                pairs[pair] = _are_cosines_and_sines(graph, *pair)
            if pairs[pair]:
                reason = f"{node.output!r} is rotated by the tables {pair[0]!r} and {pair[1]!r}"
                yield Island(self.name, reason, self.hazard, ordered({node, *products}))


def _table(graph: Graph, product: Node) -> str | None:
    """The constant, or the folded Cos or Sin, that one side of a product is taken from."""
    for name in graph.float_inputs(product):
        root = before_movement(graph, name)
        maker = graph.producer(root)
        if graph.weight(root) is not None or (root in graph.static and maker is not None and maker.is_a("Cos", "Sin")):
            return root
    return None


def _are_cosines_and_sines(graph: Graph, one: str, other: str) -> bool:
    makers = [graph.producer(name) for name in (one, other)]
    if all(maker is not None and maker.is_a("Cos", "Sin") for maker in makers):
        return len({maker.op for maker in makers if maker is not None}) == 2
    tables = [_values(graph, name) for name in (one, other)]
    first, second = tables
    if first is None or second is None or first.shape != second.shape or first.size < 2:
        return False
    on_circle = np.abs(np.square(first) + np.square(second) - 1.0) < _TOLERANCE
    return bool(on_circle.all()) and float(np.ptp(second)) > _TOLERANCE


def _values(graph: Graph, name: str) -> NDArray[np.float32] | None:
    tensor = graph.weight(name)
    if tensor is None or tensor.data_type != TensorProto.FLOAT or 4 * prod(tensor.dims) > _LARGEST_TABLE:
        return None
    payload = graph.index.skeleton.payload(tensor)
    if payload is None:
        return numpy_helper.to_array(tensor)
    return np.frombuffer(payload.read(), "<f4").reshape(tuple(tensor.dims))
