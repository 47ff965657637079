"""How large values are likely to be, estimated from the weights alone, without running the model.

Each value has a root mean square, over all channels and of the largest. A dot product with a weight column w
multiplies the rms by ||w|| if its terms are independent; sums add in quadrature; a norm brings the rms back to its
gamma. Public inputs are taken as standard normal. It is an estimate that tells which values are worth measuring, not a
bound: bounds grow by sqrt(n) at each layer and would name every value of every network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import Island, Surroundings
from worker.precision.islands.normalization import DecomposedNorm
from worker.precision.ops import MOVEMENT

SIGMAS = 6.0
"""The largest of a million normal values lies about five sigmas out."""

_SAMPLES, _ROWS, _ELEMENTS = 64, 1024, 1 << 14
_HUGE = 1e9
_UNIT = frozenset({"Sigmoid", "Tanh", "Cos", "Sin", "Erf", "Softmax", "LSTM", "GRU", "RNN", "HardSigmoid", "Softsign"})
_NORMS = frozenset({"LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization"})
_KEEPS = MOVEMENT | frozenset(
    {
        "Relu", "LeakyRelu", "Gelu", "Elu", "Selu", "Celu", "HardSwish", "PRelu", "Neg", "Abs", "Max", "Min", "Clip",
        "Dropout", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Resize", "ReduceMax", "ReduceMin",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Magnitude:
    """Root mean squares: `rms` over all channels, `peak` of the largest channel."""

    rms: float
    peak: float


@dataclass(slots=True)
class Magnitudes:
    """Estimates for every FP32 value, in one pass over the graph."""

    graph: Graph
    known: dict[str, Magnitude] = field(default_factory=dict)

    def estimate(self) -> dict[str, Magnitude]:
        for node in self.graph.nodes:
            outputs = self.graph.float_outputs(node)
            if outputs:
                found = _capped(self._of_node(node))
                self.known.update((name, found) for name in outputs if name not in self.known)
        return self.known

    def of(self, name: str) -> Magnitude:
        if name not in self.known:
            tensor = self.graph.weight(name)
            self.known[name] = _normal(1.0) if tensor is None else self._of_weight(tensor)
        return self.known[name]

    def _of_weight(self, tensor: TensorProto) -> Magnitude:
        if tensor.data_type != TensorProto.FLOAT or prod(tensor.dims) == 0:
            return _normal(1.0)
        values = _sample(self.graph, tensor, (1, prod(tensor.dims)), along=1)
        finite = values[np.isfinite(values)].astype(np.float64)
        if not finite.size:
            return Magnitude(0.0, 0.0)
        return Magnitude(sqrt(float((finite**2).mean())), float(np.abs(finite).max()))

    def _of_node(self, node: Node) -> Magnitude:
        rule = _RULES.get(node.op)
        inputs = [self.of(name) for name in self.graph.float_inputs(node)]
        if rule is not None and inputs:
            return rule(self, node, inputs)
        if node.op in _UNIT:
            return Magnitude(0.5, 1.0)
        if node.op in _KEEPS and inputs:
            return max(inputs if node.is_a("Concat", "Where", "Max", "Min") else inputs[:1], key=lambda one: one.peak)
        return _normal(1.0)

    def product(self, node: Node, inputs: list[Magnitude]) -> Magnitude:
        """MatMul, Gemm, Conv: by the norms of the weight's columns; of two activations, by the length of the sum."""
        tensor = self.graph.weight(node.input(1))
        source = self.graph.producer(node.input(0))
        if source is not None and source.is_a("Softmax"):
            return inputs[1]  # an average of values
        if tensor is None or tensor.data_type != TensorProto.FLOAT or len(tensor.dims) < 2:
            shape = self.graph.shape(node.input(0))
            length = shape[-1] if shape and shape[-1] else 64
            return _normal(inputs[0].rms * inputs[1].rms * sqrt(length)) if len(inputs) > 1 else inputs[0]
        norms, largest = self._columns(node, tensor)
        rms = inputs[0].rms * float(sqrt((norms**2).mean()))
        return Magnitude(rms, max(inputs[0].rms * float(norms.max()), inputs[0].peak * largest))

    def _columns(self, node: Node, tensor: TensorProto) -> tuple[NDArray[np.float64], float]:
        """The L2 norm of each column, scaled up from a sample of its elements, and the largest element seen."""
        dims = tuple(tensor.dims)
        by_row = node.is_a("Conv") or bool(node.attribute("transB", 0))
        shape = (dims[0], prod(dims[1:])) if by_row else (prod(dims[:-1]), dims[-1])
        if prod(shape) == 0:
            return np.zeros(1), 0.0
        values = _sample(self.graph, tensor, shape, along=1 if by_row else 0)
        length, axis = (shape[1], 1) if by_row else (dims[-2], 0)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.square(values).mean(axis=axis, dtype=np.float64) * length)
        return np.nan_to_num(norms, posinf=_HUGE), min(float(np.abs(values).max()), _HUGE)


def _normal(rms: float) -> Magnitude:
    return Magnitude(rms, rms)


def _capped(size: Magnitude) -> Magnitude:
    return Magnitude(min(size.rms, _HUGE), min(size.peak, _HUGE))


def _sample(graph: Graph, tensor: TensorProto, shape: tuple[int, int], along: int) -> NDArray[np.float32]:
    """A part of the tensor as a matrix: some whole rows (along 0), or the start of each of many rows (along 1)."""
    payload = graph.index.skeleton.payload(tensor)
    if payload is None:
        values = numpy_helper.to_array(tensor).reshape(shape)
        return values[:: max(1, shape[0] // _SAMPLES)] if along == 0 else values
    rows, columns = shape
    most, width = (_SAMPLES, columns) if along == 0 else (_ROWS, min(columns, _SAMPLES if rows > 1 else _ELEMENTS))
    starts = range(0, rows, -(-rows // most))
    data = payload.slices((4 * row * columns for row in starts), 4 * width)
    return np.frombuffer(data, "<f4").reshape(len(starts), width)


Rule = Callable[[Magnitudes, Node, list[Magnitude]], Magnitude]


def _add(_: Magnitudes, _node: Node, inputs: list[Magnitude]) -> Magnitude:
    return Magnitude(sqrt(sum(one.rms**2 for one in inputs)), sqrt(sum(one.peak**2 for one in inputs)))


def _multiply(_: Magnitudes, _node: Node, inputs: list[Magnitude]) -> Magnitude:
    first, *rest = inputs
    others = prod(one.rms for one in rest)
    return Magnitude(
        first.rms * others, max(first.peak * others, first.rms * max((one.peak for one in rest), default=1.0))
    )


def _divide(_: Magnitudes, _node: Node, inputs: list[Magnitude]) -> Magnitude:
    by = inputs[-1].rms or 1.0
    above = inputs[0] if len(inputs) > 1 else Magnitude(1.0, 1.0)
    return Magnitude(above.rms / by, above.peak / by)


def _power(rules: Magnitudes, node: Node, inputs: list[Magnitude]) -> Magnitude:
    exponent = rules.graph.scalar(node.input(1)) if node.is_a("Pow") else 0.5
    if exponent is None or not inputs[0].rms:
        return inputs[0]
    return Magnitude(inputs[0].rms ** exponent, inputs[0].peak ** exponent)


def _mean(_: Magnitudes, _node: Node, inputs: list[Magnitude]) -> Magnitude:
    return Magnitude(inputs[0].rms, inputs[0].rms)


def _norm(_: Magnitudes, _node: Node, inputs: list[Magnitude]) -> Magnitude:
    gamma = inputs[1] if len(inputs) > 1 else Magnitude(1.0, 1.0)
    return Magnitude(gamma.rms, gamma.peak)


def _values(_: Magnitudes, _node: Node, inputs: list[Magnitude]) -> Magnitude:
    return inputs[2] if len(inputs) > 2 else inputs[0]


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("MatMul", "Gemm", "Conv"), Magnitudes.product),
    **dict.fromkeys(("Add", "Sub", "Sum"), _add),
    **dict.fromkeys(("Div", "Reciprocal"), _divide),
    **dict.fromkeys(("Pow", "Sqrt"), _power),
    **dict.fromkeys(_NORMS, _norm),
    "Mul": _multiply,
    "ReduceMean": _mean,
    "Attention": _values,
}


def suspects(graph: Graph, limit: float) -> frozenset[str]:
    """Activations of the main graph that may well pass `limit` somewhere; what norms make of them is FP32 anyway."""
    own = {id(graph.index.main)}
    norms = {
        name
        for island in DecomposedNorm().find(graph, Surroundings())
        if isinstance(island, Island)
        for node in island.nodes
        for name in node.proto.output
    }
    return frozenset(
        name
        for name, size in Magnitudes(graph).estimate().items()
        if SIGMAS * size.peak > limit
        and name in graph.dense
        and name not in norms
        and id(graph.index.homes[name]) in own
    )
