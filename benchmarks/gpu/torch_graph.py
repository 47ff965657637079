"""Runs an ONNX graph node by node with torch's kernels on a GPU, each node in the dtypes that the graph says.

No fusion, no upcasting: what a half kernel does to a value is seen after each node. Covers the operators of the
generated DiTs and of the PP-OCR models; another operator is an error that names it.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Tensor = torch.Tensor
Attributes = Mapping[str, Any]
Kernel = Callable[[Attributes, list[Any]], Any]

_DTYPES = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.INT64: torch.int64,
    TensorProto.INT32: torch.int32,
    TensorProto.BOOL: torch.bool,
}


def run(model: ModelProto, feeds: Mapping[str, np.ndarray], device: str = "cuda") -> dict[str, np.ndarray]:
    """Every output by name, as FP32 arrays."""
    values: dict[str, Any] = {"": None}
    values.update({name: torch.from_numpy(value).to(device) for name, value in feeds.items()})
    values.update({tensor.name: _tensor(tensor, device) for tensor in model.graph.initializer})
    with torch.no_grad():
        for node in model.graph.node:
            _run_node(node, values, device)
    return {value.name: values[value.name].float().cpu().numpy() for value in model.graph.output}


def _run_node(node: NodeProto, values: dict[str, Any], device: str) -> None:
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type == "Constant":
        results: Any = _tensor(attributes["value"], device)
    elif node.op_type in KERNELS:
        results = KERNELS[node.op_type](attributes, [values[name] for name in node.input])
    else:
        raise ValueError(f"{node.op_type} ({node.name}) has no torch kernel here")
    outputs = results if isinstance(results, (list, tuple)) else [results]
    values.update(zip(node.output, outputs, strict=False))


def _tensor(tensor: TensorProto, device: str) -> Tensor:
    values = numpy_helper.to_array(tensor)
    if tensor.data_type == TensorProto.BFLOAT16:
        return torch.from_numpy(values.astype(np.float32)).to(device).bfloat16()
    return torch.from_numpy(np.array(values)).to(device)


def _ints(value: Tensor) -> list[int]:
    return [int(item) for item in value.reshape(-1).tolist()]


def _axes(attributes: Attributes, inputs: list[Any]) -> list[int]:
    return list(attributes["axes"]) if "axes" in attributes else _ints(inputs[1])


def _reshape(_: Attributes, inputs: list[Any]) -> Tensor:
    value, shape = inputs[0], _ints(inputs[1])
    return value.reshape([value.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


def _unsqueeze(attributes: Attributes, inputs: list[Any]) -> Tensor:
    axes = _axes(attributes, inputs)
    value, rank = inputs[0], inputs[0].dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        value = value.unsqueeze(axis)
    return value


def _squeeze(attributes: Attributes, inputs: list[Any]) -> Tensor:
    axes = _axes(attributes, inputs) if "axes" in attributes or len(inputs) > 1 else None
    return inputs[0].squeeze() if axes is None else inputs[0].squeeze(tuple(axes))


def _slice(_: Attributes, inputs: list[Any]) -> Tensor:
    value, starts, ends = inputs[0], _ints(inputs[1]), _ints(inputs[2])
    axes = _ints(inputs[3]) if len(inputs) > 3 and inputs[3] is not None else list(range(len(starts)))
    steps = _ints(inputs[4]) if len(inputs) > 4 and inputs[4] is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        picked = range(value.shape[axis])[start:end:step]
        value = value.index_select(axis, torch.tensor(list(picked), dtype=torch.int64, device=value.device))
    return value


def _split(attributes: Attributes, inputs: list[Any]) -> list[Tensor]:
    axis = attributes.get("axis", 0)
    sizes = _ints(inputs[1]) if len(inputs) > 1 else None
    parts = attributes.get("num_outputs", 2)
    return list(inputs[0].split(sizes or -(-inputs[0].shape[axis] // parts), dim=axis))


def _gather(attributes: Attributes, inputs: list[Any]) -> Tensor:
    value, index, axis = inputs[0], inputs[1], attributes.get("axis", 0) % inputs[0].dim()
    index = torch.where(index < 0, index + value.shape[axis], index)
    shape = [*value.shape[:axis], *index.shape, *value.shape[axis + 1 :]]
    return value.index_select(axis, index.reshape(-1)).reshape(shape)


def _reduce_mean(attributes: Attributes, inputs: list[Any]) -> Tensor:
    return inputs[0].mean(dim=_axes(attributes, inputs), keepdim=bool(attributes.get("keepdims", 1)))


def _clip(_: Attributes, inputs: list[Any]) -> Tensor:
    low, high = (*inputs[1:], None, None)[:2]
    return torch.clamp(inputs[0], min=low, max=high)


def _conv(attributes: Attributes, inputs: list[Any]) -> Tensor:
    value, weight, bias = (*inputs, None)[:3]
    dims = weight.dim() - 2
    pads = attributes.get("pads", [0] * 2 * dims)
    padded = functional.pad(value, [pad for axis in reversed(range(dims)) for pad in (pads[axis], pads[axis + dims])])
    convolve = {1: functional.conv1d, 2: functional.conv2d}[dims]
    strides, dilations = attributes.get("strides", [1] * dims), attributes.get("dilations", [1] * dims)
    return convolve(padded, weight, bias, strides, 0, dilations, attributes.get("group", 1))


def _pool(kind: str) -> Kernel:
    def pool(attributes: Attributes, inputs: list[Any]) -> Tensor:
        kernel, strides = attributes["kernel_shape"], attributes.get("strides", [1, 1])
        if kind == "max":
            return functional.max_pool2d(inputs[0], kernel, strides, attributes.get("pads", [0, 0])[:2])
        return functional.avg_pool2d(inputs[0], kernel, strides, attributes.get("pads", [0, 0])[:2])

    return pool


def _batch_norm(attributes: Attributes, inputs: list[Any]) -> Tensor:
    value, scale, bias, mean, variance = inputs
    return functional.batch_norm(value, mean, variance, scale, bias, eps=attributes.get("epsilon", 1e-5))


def _rms_norm(attributes: Attributes, inputs: list[Any]) -> Tensor:
    value, scale = inputs[:2]
    return value * torch.rsqrt(value.square().mean(-1, keepdim=True) + attributes.get("epsilon", 1e-5)) * scale


def _attention(attributes: Attributes, inputs: list[Any]) -> Tensor:
    query, key, value, mask = (*inputs, None)[:4]
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=attributes.get("scale"))


def _flatten(attributes: Attributes, inputs: list[Any]) -> Tensor:
    return inputs[0].reshape(prod(inputs[0].shape[: attributes.get("axis", 1)]), -1)


def _expand(_: Attributes, inputs: list[Any]) -> Tensor:
    return inputs[0].expand(torch.broadcast_shapes(inputs[0].shape, tuple(_ints(inputs[1]))))


def _shape(attributes: Attributes, inputs: list[Any]) -> Tensor:
    sizes = inputs[0].shape[attributes.get("start", 0) : attributes.get("end")]
    return torch.tensor(sizes, dtype=torch.int64, device=inputs[0].device)


KERNELS: dict[str, Kernel] = {
    "Add": lambda _, x: x[0] + x[1],
    "Attention": _attention,
    "AveragePool": _pool("average"),
    "BatchNormalization": _batch_norm,
    "Cast": lambda a, x: x[0].to(_DTYPES[a["to"]]),
    "Clip": _clip,
    "Concat": lambda a, x: torch.cat(x, dim=a["axis"]),
    "Conv": _conv,
    "Cos": lambda _, x: torch.cos(x[0]),
    "Div": lambda _, x: x[0] / x[1] if x[0].is_floating_point() else x[0] // x[1],
    "Einsum": lambda a, x: torch.einsum(a["equation"].decode(), *x),
    "Exp": lambda _, x: torch.exp(x[0]),
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GlobalAveragePool": lambda _, x: x[0].mean(dim=tuple(range(2, x[0].dim())), keepdim=True),
    "HardSigmoid": lambda a, x: torch.clamp(a.get("alpha", 0.2) * x[0] + a.get("beta", 0.5), 0, 1),
    "Identity": lambda _, x: x[0],
    "IsInf": lambda _, x: torch.isinf(x[0]),
    "IsNaN": lambda _, x: torch.isnan(x[0]),
    "MatMul": lambda _, x: torch.matmul(x[0], x[1]),
    "Max": lambda _, x: torch.maximum(x[0], x[1]),
    "MaxPool": _pool("max"),
    "Mul": lambda _, x: x[0] * x[1],
    "Neg": lambda _, x: -x[0],
    "Pow": lambda _, x: torch.pow(x[0], x[1]),
    "RMSNormalization": _rms_norm,
    "Range": lambda _, x: torch.arange(x[0].item(), x[1].item(), x[2].item(), dtype=x[0].dtype, device=x[0].device),
    "Reciprocal": lambda _, x: torch.reciprocal(x[0]),
    "ReduceMean": _reduce_mean,
    "Relu": lambda _, x: torch.relu(x[0]),
    "Reshape": _reshape,
    "Shape": _shape,
    "Sigmoid": lambda _, x: torch.sigmoid(x[0]),
    "Sin": lambda _, x: torch.sin(x[0]),
    "Slice": _slice,
    "Softmax": lambda a, x: torch.softmax(x[0], dim=a.get("axis", -1)),
    "Split": _split,
    "Sqrt": lambda _, x: torch.sqrt(x[0]),
    "Squeeze": _squeeze,
    "Sub": lambda _, x: x[0] - x[1],
    "Transpose": lambda a, x: x[0].permute(*a["perm"]),
    "Unsqueeze": _unsqueeze,
    "Where": lambda _, x: torch.where(x[0], x[1], x[2]),
}
