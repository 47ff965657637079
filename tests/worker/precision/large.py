"""Models that are large in one respect: megabytes of weights, or nodes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

WIDTH = 64


def write_mlp(path: Path, layers: int, width: int) -> Path:
    """`layers` matrices of 4 * width^2 bytes in one external-data file, which is sparse: zeros but for a few."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(layers)],
        "mlp",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info(f"v{layers}", TensorProto.FLOAT, [1, width])],
        [_external(f"w{i}", f"{path.name}.data", width, i) for i in range(layers)],
    )
    with path.with_name(f"{path.name}.data").open("wb") as file:
        for i in range(layers):
            file.seek(4 * width**2 * i)
            file.write(np.full(width, 0.25, "<f4").tobytes())
        file.truncate(4 * width**2 * layers)
    path.write_bytes(_model(graph).SerializeToString())
    return path


def _external(name: str, location: str, width: int, index: int) -> TensorProto:
    size = 4 * width**2
    tensor = TensorProto(
        name=name, dims=[width, width], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": location, "offset": index * size, "length": size}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Chain:
    """A graph that grows by a few nodes at a time, from v0 = x @ w on."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.constant("w", np.random.default_rng(0).normal(0, 0.125, (WIDTH, WIDTH)))
        self.op("MatMul", "x", "w", "v0")

    def op(self, op: str, *names: str, **attributes: object) -> None:
        *inputs, output = names
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"make_{output}", **attributes))

    def constant(self, name: str, values: object) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def model(self) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, WIDTH])
        y = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, None)
        return _model(helper.make_graph(self.nodes, "chain", [x], [y], self.weights))


def deep(chain: Chain, step: int) -> None:
    chain.op("Relu" if step % 2 else "Tanh", f"v{step}", f"v{step + 1}")


def tiny_weights(chain: Chain, step: int) -> None:
    chain.op("Add", f"v{step}", chain.constant(f"c{step}", np.full(WIDTH, step % 7)), f"v{step + 1}")


def norms(chain: Chain, step: int) -> None:
    _norm(chain, step, f"v{step}")


def norms_of_one_value(chain: Chain, step: int) -> None:
    _norm(chain, step, "v0")


def _norm(chain: Chain, i: int, source: str) -> None:
    chain.op("Mul", source, source, f"squares{i}")
    chain.op("ReduceMean", f"squares{i}", f"mean{i}", axes=[-1])
    chain.op("Add", f"mean{i}", chain.constant(f"eps{i}", 1e-6), f"above{i}")
    chain.op("Sqrt", f"above{i}", f"root{i}")
    chain.op("Div", source, f"root{i}", f"normed{i}")
    chain.op("Mul", f"normed{i}", chain.constant(f"gamma{i}", np.ones(WIDTH)), f"scaled{i}")
    chain.op("Add", f"v{i}", f"scaled{i}", f"v{i + 1}")


def exponentials(chain: Chain, step: int) -> None:
    chain.op("Exp", f"v{step}", f"exp{step}")
    chain.op("Add", f"exp{step}", chain.constant(f"one{step}", np.ones(WIDTH)), f"sum{step}")
    chain.op("Log", f"sum{step}", f"log{step}")
    chain.op("MatMul", f"log{step}", "w", f"v{step + 1}")


def rotations(chain: Chain, step: int) -> None:
    if step == 0:
        chain.op("Mul", "x", "x", "angle")
    chain.op("Cos", "angle", f"cos{step}")
    chain.op("Sin", "angle", f"sin{step}")
    chain.op("Mul", f"v{step}", f"cos{step}", f"left{step}")
    chain.op("Mul", f"v{step}", f"sin{step}", f"right{step}")
    chain.op("Add", f"left{step}", f"right{step}", f"turned{step}")
    chain.op("MatMul", f"turned{step}", "w", f"v{step + 1}")


def attentions(chain: Chain, step: int) -> None:
    chain.op("Transpose", f"v{step}", f"keys{step}", perm=[1, 0])
    chain.op("MatMul", f"v{step}", f"keys{step}", f"scores{step}")
    chain.op("Add", f"scores{step}", chain.constant(f"mask{step}", [[-1e9]]), f"masked{step}")
    chain.op("Softmax", f"masked{step}", f"shares{step}", axis=-1)
    chain.op("MatMul", f"shares{step}", f"v{step}", f"mixed{step}")
    chain.op("MatMul", f"mixed{step}", "w", f"v{step + 1}")


def computed_constants(chain: Chain, step: int) -> None:
    if step == 0:
        chain.constant("c0", np.ones(WIDTH))
    chain.op("Add", f"c{step}", "c0", f"c{step + 1}")
    chain.op("Mul", f"v{step}", f"c{step + 1}", f"v{step + 1}")


def positions(chain: Chain, step: int) -> None:
    if step == 0:
        chain.op("Shape", "x", "shape")
        chain.op("Cast", "shape", "p0", to=TensorProto.FLOAT)
    chain.op("Cast", "shape", f"size{step}", to=TensorProto.FLOAT)
    chain.op("Mul", f"p{step}", f"size{step}", f"p{step + 1}")
    chain.op("ReduceMean", f"p{step + 1}", f"mean{step}")
    chain.op("Mul", f"v{step}", f"mean{step}", f"v{step + 1}")


def marked(chain: Chain, step: int) -> None:
    chain.op("Cast", f"v{step}", f"float{step}", to=TensorProto.FLOAT)
    chain.op("Relu", f"float{step}", f"v{step + 1}")


Grow = Callable[[Chain, int], None]
SHAPES: dict[str, Grow] = {
    grow.__name__: grow
    for grow in (
        deep, tiny_weights, norms, norms_of_one_value, exponentials, rotations, attentions, computed_constants,
        positions, marked,
    )
}  # fmt: skip


def grown(grow: Grow, steps: int) -> onnx.ModelProto:
    chain = Chain()
    for step in range(steps):
        grow(chain, step)
    return chain.model()
