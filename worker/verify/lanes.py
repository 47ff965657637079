"""Nodes that add up in lanes: the contracted axis is dealt out, each lane's sum is rounded, and lanes are added up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from worker.graph.dtype import HALF_TYPES
from worker.graph.index import GraphIndex
from worker.graph.inference import Shape
from worker.graph.names import NameSource
from worker.graph.node import Node
from worker.graph.types import Types

LANES = 8
HALVES = {half.type_string: half.onnx for half in HALF_TYPES.values()}
STRIDED_SLICE = 10
SUM_AXES_INPUT = 13
"""Opsets: the first in which Slice has steps, and in which ReduceSum takes its axes as an input."""
_REDUCE_AXES_INPUT = 18
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the graph, and the integer constants that were made for it."""

    index: GraphIndex
    types: Types
    shapes: dict[str, Shape]
    names: NameSource
    constants: dict[tuple[int, ...], TensorProto] = field(default_factory=dict)

    def shape(self, name: str) -> Shape | None:
        """As far as it is known; that of a weight always is."""
        weight = self.index.weights.get(name)
        return self.shapes.get(name) if weight is None else tuple(weight.dims)

    def ints(self, *values: int) -> str:
        """A constant of integers."""
        if values not in self.constants:
            name = self.names.fresh(f"lanes/{'_'.join(map(str, values))}")
            self.constants[values] = numpy_helper.from_array(np.array(values, np.int64), name)
        return self.constants[values].name


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the nodes that stand for one node."""

    facts: Facts
    node: Node
    nodes: list[NodeProto] = field(default_factory=list)

    @property
    def half(self) -> int:
        return HALVES[self.facts.types[self.node.output]]

    def rank(self, name: str) -> int | None:
        shape = self.facts.shape(name)
        return None if shape is None else len(shape)

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or self.facts.names.fresh(f"{self.node.output}/{op}")
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def reduce(self, op: str, value: str, axes: tuple[int, ...] | None, keep: int) -> str:
        since = SUM_AXES_INPUT if op == "ReduceSum" else _REDUCE_AXES_INPUT
        if axes is None:
            return self.add(op, value, keepdims=keep)
        if self.node.opset < since:
            return self.add(op, value, axes=list(axes), keepdims=keep)
        return self.add(op, value, self.facts.ints(*axes), keepdims=keep)

    def sum(self, value: str, axes: tuple[int, ...] | None, keep: int) -> str:
        """The sum in half over `axes` (None: all), dealt out along the last of them where that is known."""
        axis = -1 if axes is None else axes[-1]
        if self.node.opset < STRIDED_SLICE or (axes is None and not self.rank(self.node.input(0))):
            return self.reduce("ReduceSum", value, axes, keep)
        return self.total(self.reduce("ReduceSum", self.lane(value, axis, lane), axes, keep) for lane in range(LANES))

    def lane(self, value: str, axis: int, lane: int, lanes: int = LANES) -> str:
        ints = self.facts.ints
        return self.add("Slice", value, ints(lane), ints(_LAST), ints(axis), ints(lanes))

    def total(self, parts: Iterator[str]) -> str:
        result = next(parts)
        for part in parts:
            result = self.add("Add", result, part)
        return result

    def mean(self, value: str, axes: tuple[int, ...] | None, keep: int) -> str:
        total = self.sum(value, axes, keep)
        wide = self.add("Cast", total, to=TensorProto.FLOAT)
        return self.add("Cast", self.add("Div", wide, self.ratio(value, total)), to=self.half)

    def ratio(self, value: str, result: str) -> str:
        """How many elements of `value` become one of `result`."""
        sizes = [self.add("Cast", self.add("Size", name), to=TensorProto.FLOAT) for name in (value, result)]
        return self.add("Div", *sizes)
