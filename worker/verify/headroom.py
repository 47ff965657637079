"""How far each tensor is from where FP16 ends: a table of the closest, and a strip along the graph."""

import math
from collections.abc import Mapping

from worker.graph.index import GraphIndex
from worker.graph.inference import infer
from worker.graph.types import propagate
from worker.verify.types import Ranges, TensorRange

CLOSEST = 24
STRIP = 320
"""Bounds of what a report holds: tensors at each end, stretches of the strip."""

_LARGEST = math.log2(65504.0)
_SMALLEST_NORMAL = -14.0


def float_values(index: GraphIndex) -> list[str]:
    """The FP32 values that nodes of the main graph produce, in order."""
    types = propagate(index, infer(index.model))
    computed = (node for node in index.nodes if node.graph is index.main and not node.is_a("Constant"))
    return [name for node in computed for name in node.proto.output if types.get(name) == "tensor(float)"]


def ranges_of(index: GraphIndex, largest: Mapping[str, float]) -> Ranges:
    """`largest`: max |x| by value, in the order of the graph. Values that are inf or NaN in FP32 are left out."""
    found = [_range(index, name, size) for name, size in largest.items() if 0.0 < size < math.inf]
    stretch = max(1, -(-len(largest) // STRIP))
    sizes = list(largest.values())
    return Ranges(
        tensors=len(largest),
        overflow=tuple(sorted(found, key=lambda one: one.overflow_bits)[:CLOSEST]),
        underflow=tuple(sorted(found, key=lambda one: one.underflow_bits)[:CLOSEST]),
        strip=tuple(_log2_of_largest(sizes[at : at + stretch]) for at in range(0, len(sizes), stretch)),
        stretch=stretch,
    )


def _range(index: GraphIndex, name: str, largest: float) -> TensorRange:
    order = math.log2(largest)
    return TensorRange(name, index.producers[name].label, largest, _LARGEST - order, order - _SMALLEST_NORMAL)


def _log2_of_largest(sizes: list[float]) -> float | None:
    finite = [size for size in sizes if 0.0 < size < math.inf]
    return round(math.log2(max(finite)), 2) if finite else None
