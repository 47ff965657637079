"""A small ONNX graph writer whose weights stay descriptions until they are written, one at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

_IR_VERSIONS = {17: 8, 20: 9, 23: 11}
_ALIGNMENT = 4096


@dataclass(frozen=True, slots=True)
class Weight:
    """A float32 weight before it has bytes: normal around `mean`, except that `hot_channels` (last axis) are `hot`."""

    tensor: TensorProto
    mean: float
    std: float
    hot: float = 0.0
    hot_channels: tuple[int, ...] = ()

    def values(self, seed: Sequence[int]) -> NDArray[np.float32]:
        array = np.random.default_rng(seed).standard_normal(tuple(self.tensor.dims), dtype=np.float32)
        array *= np.float32(self.std)
        array += np.float32(self.mean)
        array[..., list(self.hot_channels)] = self.hot
        return array


@dataclass(slots=True)
class GraphBuilder:
    """Collects nodes, constants and weights; names them as the exporter does whose graph is being spelled.

    `scoped_names`: TorchScript's `/blocks.0/attn/MatMul_1` and Constant nodes; otherwise dynamo's `node_MatMul_17`
    and initializers.
    """

    opset: int
    scoped_names: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    _scopes: list[str] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes added inside belong to the module `name`."""
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; answer the output's name."""
        return self.ops(op_type, *inputs, outputs=1, **attributes)[0]

    def ops(self, op_type: str, *inputs: str, outputs: int, **attributes: Any) -> tuple[str, ...]:
        """Add a node with several outputs; answer their names."""
        node, results = self._names(op_type, outputs)
        self.nodes.append(helper.make_node(op_type, inputs, results, name=node, **attributes))
        return results

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float32) -> str:
        """A constant: a node of its own (TorchScript) or an initializer (dynamo)."""
        array = np.asarray(value, dtype)
        if self.scoped_names:
            return self.op("Constant", value=numpy_helper.from_array(array))
        name = f"val_{self._count('val')}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def weight(
        self,
        name: str,
        *shape: int,
        mean: float = 0.0,
        std: float = 0.0,
        hot: float = 0.0,
        hot_channels: tuple[int, ...] = (),
    ) -> str:
        """A weight `<scope>.<name>`; its values exist only while it is written."""
        full = ".".join([*self._scopes, name])
        tensor = TensorProto(name=full, data_type=TensorProto.FLOAT, dims=shape)
        self.initializers.append(tensor)
        self.weights.append(Weight(tensor, mean, std, hot, hot_channels))
        return full

    def linear(self, name: str, x: str, fan_in: int, fan_out: int, gain: float = 1.0) -> str:
        """x @ W without bias; W keeps the scale of x times `gain`."""
        return self.op("MatMul", x, self.weight(f"{name}.weight", fan_in, fan_out, std=gain * fan_in**-0.5))

    def rename(self, old: str, new: str) -> None:
        """Give the last node's output its public name."""
        self.nodes[-1].output[list(self.nodes[-1].output).index(old)] = new

    def model(
        self, name: str, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """The model without weight bytes; dynamo exports also declare every tensor's type."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSIONS[self.opset], producer_name="pytorch"
        )
        return model if self.scoped_names else onnx.shape_inference.infer_shapes(model)

    def _names(self, op_type: str, outputs: int) -> tuple[str, tuple[str, ...]]:
        if not self.scoped_names:
            number = self._count("node")
            return f"node_{op_type}_{number}", tuple(
                f"{op_type.lower()}_{number}" + (f"_split_{i}" if i else "") for i in range(outputs)
            )
        base = "/" + "/".join([*self._scopes, op_type])
        number = self._count(base)
        node = f"{base}_{number}" if number else base
        return node, tuple(f"{node}_output_{i}" for i in range(outputs))

    def _count(self, key: str) -> int:
        self._counts[key] += 1
        return self._counts[key] - 1


def save(model: onnx.ModelProto, weights: Sequence[Weight], seed: int, path: Path, *, external: bool) -> None:
    """Write `model`, its weights drawn from `seed`; `external`: streamed into `<path>.data`, one weight in memory."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    if not external:
        for index, weight in enumerate(weights):
            tensors[weight.tensor.name].raw_data = weight.values((seed, index)).tobytes()
    else:
        _stream(tensors, weights, seed, path.with_name(f"{path.name}.data"))
    path.write_bytes(model.SerializeToString(deterministic=True))


def _stream(tensors: dict[str, TensorProto], weights: Sequence[Weight], seed: int, data: Path) -> None:
    with data.open("wb") as file:
        for index, weight in enumerate(weights):
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            tensor, offset = tensors[weight.tensor.name], file.tell()
            weight.values((seed, index)).tofile(file)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", data.name), ("offset", offset), ("length", file.tell() - offset)):
                tensor.external_data.add(key=key, value=str(value))
