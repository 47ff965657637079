"""How three exporters write the same parts of a transformer: what a converter must recognise by meaning."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from worker.examples.graph_builder import GraphBuilder

_EPSILON = 1e-6
_FLOAT32_LOWEST = float(np.finfo(np.float32).min)


class Spelling(ABC):
    """One exporter's way to write norms, positions and attention (on tensors [1, heads, length, head dim])."""

    opset: int
    scoped_names: bool

    def __init__(self, head_dim: int) -> None:
        self.head_dim = head_dim
        self.rotary_dim = head_dim // 2
        self.builder = GraphBuilder(self.opset, self.scoped_names)

    @abstractmethod
    def rms_norm(self, x: str, gamma: str) -> str:
        """x / sqrt(mean(x^2) + eps) * gamma over the last axis."""

    @abstractmethod
    def frequencies(self, low: float, high: float, count: int) -> str:
        """`count` frequencies between `low` and `high`, spaced exponentially."""

    @abstractmethod
    def rotary_table(self, sequence: str) -> Callable[[], tuple[str, str]]:
        """Angles position * inverse frequency for a [1, length, …] tensor; each call of the result gives (cos, sin)."""

    @abstractmethod
    def split_heads(self, x: str, heads: int) -> str:
        """[1, length, heads * head dim] -> [1, heads, length, head dim]."""

    @abstractmethod
    def length(self, sequence: str) -> str:
        """[length] of a [1, length, …] tensor, for shapes."""

    @abstractmethod
    def mask(self, keep: str) -> str:
        """A bool [1, 1, queries, keys] mask in the form that `attention` takes."""

    @abstractmethod
    def attention(self, q: str, k: str, v: str, mask: str | None) -> str:
        """softmax(q k^T / sqrt(head dim) + mask) v."""

    def as_float32(self, x: str) -> str:
        """What `.float()` leaves behind in the graph of an FP32 module."""
        return x

    def slice_last(self, x: str, start: int, end: int) -> str:
        g = self.builder
        return g.op("Slice", x, g.ints(start), g.ints(end), g.ints(-1), g.ints(1))

    def rotate(self, x: str, table: tuple[str, str]) -> str:
        """Rotary embedding on the first half of the head; the other half is put back as it was."""
        g, half = self.builder, self.rotary_dim // 2
        cos, sin = table
        rotated = self.as_float32(self.slice_last(x, 0, self.rotary_dim))
        turned = g.op(
            "Concat",
            g.op("Neg", self.slice_last(rotated, half, self.rotary_dim)),
            self.slice_last(rotated, 0, half),
            axis=-1,
        )
        rotated = g.op("Add", g.op("Mul", rotated, cos), g.op("Mul", turned, sin))
        return g.op("Concat", self.as_float32(rotated), self.slice_last(x, self.rotary_dim, self.head_dim), axis=-1)

    def inverse_frequencies(self) -> str:
        exponents = np.arange(0, self.rotary_dim, 2, dtype=np.float32) / self.rotary_dim
        return self.builder.constant(np.float32(1.0) / np.float32(10000.0) ** exponents)


class TorchScript(Spelling):
    """The older exporter, opset 17: Cast markers that do nothing, constants as nodes, sizes computed at run time."""

    opset, scoped_names = 17, True

    def as_float32(self, x: str) -> str:
        return self.builder.op("Cast", x, to=TensorProto.FLOAT)

    def rms_norm(self, x: str, gamma: str) -> str:
        g = self.builder
        x = self.as_float32(x)
        mean_square = g.op("ReduceMean", g.op("Pow", x, g.constant(2.0)), axes=[-1], keepdims=1)
        root = g.op("Sqrt", g.op("Add", mean_square, g.constant(_EPSILON)))
        normed = g.op("Mul", x, g.op("Div", g.constant(1.0), root))
        return self.as_float32(g.op("Mul", normed, gamma))

    def frequencies(self, low: float, high: float, count: int) -> str:
        g = self.builder
        ramp = g.constant(np.linspace(0.0, 1.0, count))
        spread = g.op("Mul", ramp, g.constant(np.log(high) - np.log(low)))
        return g.op("Exp", g.op("Add", spread, g.constant(np.log(low))))

    def rotary_table(self, sequence: str) -> Callable[[], tuple[str, str]]:
        g = self.builder
        positions = g.op("Range", g.constant(0, np.int64), self._size(sequence, 1), g.constant(1, np.int64))
        positions = self.as_float32(g.op("Cast", positions, to=TensorProto.FLOAT))
        angle = g.op("Einsum", positions, self.inverse_frequencies(), equation="i,j->ij")
        angle = g.op("Concat", angle, angle, axis=-1)
        return lambda: (g.op("Cos", self.as_float32(angle)), g.op("Sin", self.as_float32(angle)))

    def length(self, sequence: str) -> str:
        return self.builder.op("Unsqueeze", self._size(sequence, 1), self.builder.ints(0))

    def split_heads(self, x: str, heads: int) -> str:
        g = self.builder
        batch = g.op("Unsqueeze", self._size(x, 0), g.ints(0))
        shape = g.op("Concat", batch, self.length(x), g.ints(heads), g.ints(self.head_dim), axis=0)
        return g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def mask(self, keep: str) -> str:
        g = self.builder
        return g.op("Where", keep, g.constant(0.0), g.constant(-np.inf))

    def attention(self, q: str, k: str, v: str, mask: str | None) -> str:
        g = self.builder
        width = g.op(
            "Cast", g.op("Slice", g.op("Shape", q), g.ints(-1), g.ints(np.iinfo(np.int64).max)), to=TensorProto.FLOAT
        )
        scale = g.op("Div", g.constant([1.0]), g.op("Sqrt", width))
        keys = g.op("Transpose", k, perm=[0, 1, 3, 2])
        scores = g.op("MatMul", g.op("Mul", q, g.op("Sqrt", scale)), g.op("Mul", keys, g.op("Sqrt", scale)))
        scores = scores if mask is None else g.op("Add", scores, mask)
        return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)

    def _size(self, x: str, dim: int) -> str:
        g = self.builder
        return g.op("Gather", g.op("Shape", x), g.constant(dim, np.int64), axis=0)


class Dynamo(Spelling):
    """The newer exporter, opset 20: no Cast markers, Reciprocal for 1/x, one table of cosines, folded constants."""

    opset, scoped_names = 20, False

    def rms_norm(self, x: str, gamma: str) -> str:
        g = self.builder
        mean_square = g.op("ReduceMean", g.op("Pow", x, g.constant(2.0)), g.ints(-1), keepdims=1)
        root = g.op("Sqrt", g.op("Add", mean_square, g.constant(_EPSILON)))
        return g.op("Mul", g.op("Mul", x, g.op("Reciprocal", root)), gamma)

    def frequencies(self, low: float, high: float, count: int) -> str:
        return self.builder.constant(np.geomspace(low, high, count))

    def rotary_table(self, sequence: str) -> Callable[[], tuple[str, str]]:
        g = self.builder
        length = g.op("Squeeze", self.length(sequence), g.ints(0))
        positions = g.op("Range", g.constant(0, np.int64), length, g.constant(1, np.int64))
        column = g.op("Unsqueeze", g.op("Cast", positions, to=TensorProto.FLOAT), g.ints(1))
        angle = g.op("Mul", column, self.inverse_frequencies())
        angle = g.op("Concat", angle, angle, axis=-1)
        table = g.op("Cos", angle), g.op("Sin", angle)
        return lambda: table

    def length(self, sequence: str) -> str:
        return self.builder.op("Shape", sequence, start=1, end=2)

    def split_heads(self, x: str, heads: int) -> str:
        g = self.builder
        return g.op("Transpose", g.op("Reshape", x, g.ints(1, -1, heads, self.head_dim)), perm=[0, 2, 1, 3])

    def mask(self, keep: str) -> str:
        g = self.builder
        return g.op("Where", keep, g.constant(0.0), g.constant(_FLOAT32_LOWEST))

    def attention(self, q: str, k: str, v: str, mask: str | None) -> str:
        g, root = self.builder, self.builder.constant(self.head_dim**-0.25)
        keys = g.op("Transpose", k, perm=[0, 1, 3, 2])
        scores = g.op("MatMul", g.op("Mul", q, root), g.op("Mul", keys, root))
        if mask is None:
            return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        weights = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
        weights = g.op("Where", g.op("IsNaN", weights), g.constant(0.0), weights)
        return g.op("MatMul", weights, v)


class Opset23(Dynamo):
    """The newer exporter at opset 23: norms and attention are one operator each."""

    opset = 23

    def rms_norm(self, x: str, gamma: str) -> str:
        return self.builder.op("RMSNormalization", x, gamma, axis=-1, epsilon=_EPSILON)

    def mask(self, keep: str) -> str:
        return keep

    def attention(self, q: str, k: str, v: str, mask: str | None) -> str:
        inputs = (q, k, v) if mask is None else (q, k, v, mask)
        return self.builder.op("Attention", *inputs, scale=self.head_dim**-0.5)


SPELLINGS: dict[str, type[Spelling]] = {"torchscript": TorchScript, "dynamo": Dynamo, "opset23": Opset23}
