"""Small models to store, load and save."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VALUES = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
"""4 KiB: large enough to be left out of a skeleton."""


def model_with(*weights: TensorProto, **options: object) -> onnx.ModelProto:
    """y = x @ the first weight (float[32, 32]); the others lie beside it."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", weights[0].name], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32])],
        list(weights),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **options)


def raw(name: str = "w") -> TensorProto:
    return numpy_helper.from_array(VALUES, name)


def unpacked(field: int, values: np.ndarray) -> bytes:
    """A repeated float field as older writers spell it: a tag before each value."""
    tag = bytes([field << 3 | 5])
    return b"".join(tag + value.tobytes() for value in values.astype("<f4").ravel())
