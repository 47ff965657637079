"""How each kind of operator adds up in half: one way a kind. None: this node cannot be dealt out into lanes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from worker.graph.node import Node
from worker.verify.lanes import LANES, STRIDED_SLICE, SUM_AXES_INPUT, Writer


def _reduction(before: str | None, after: str | None, *, mean: bool = False) -> Callable[[Writer], str | None]:
    def write(writer: Writer) -> str | None:
        axes, known = _axes(writer)
        if not known:
            return None
        value = writer.node.input(0)
        if before == "Square":
            value = writer.add("Mul", value, value)
        elif before is not None:
            value = writer.add(before, value)
        add_up = writer.mean if mean else writer.sum
        result = add_up(value, axes, writer.node.attribute("keepdims", 1))
        return result if after is None else writer.add(after, result)

    return write


def _axes(writer: Writer) -> tuple[tuple[int, ...] | None, bool]:
    """The axes of a reduction (None: all), and whether they are known."""
    node = writer.node
    if node.input(1):
        values = writer.facts.index.array(node.input(1))
        axes = None if values is None else tuple(int(axis) for axis in values.ravel())
        return axes or None, bool(axes)
    if node.attribute("noop_with_empty_axes", 0):
        return None, False
    axes = node.attribute("axes")
    return (tuple(axes), True) if axes else (None, True)


def _softmax(writer: Writer) -> str | None:
    exponentials = _exponentials(writer)
    return None if exponentials is None else writer.add("Div", exponentials[1], exponentials[2])


def _log_softmax(writer: Writer) -> str | None:
    exponentials = _exponentials(writer)
    return None if exponentials is None else writer.add("Sub", exponentials[0], writer.add("Log", exponentials[2]))


def _exponentials(writer: Writer) -> tuple[str, str, str] | None:
    """x - max, its exponentials, and their sum."""
    node, value = writer.node, writer.node.input(0)
    axis = node.attribute("axis", -1 if node.opset >= SUM_AXES_INPUT else 1)
    rank = writer.rank(value)
    if node.opset < SUM_AXES_INPUT and axis != -1 and (rank is None or axis != rank - 1):
        return None  # up to opset 12 all axes from `axis` on are one
    shifted = writer.add("Sub", value, writer.reduce("ReduceMax", value, (axis,), 1))
    powers = writer.add("Exp", shifted)
    return shifted, powers, writer.sum(powers, (axis,), 1)


def _global_pool(writer: Writer) -> str:
    value = writer.node.input(0)
    pooled = writer.add("GlobalAveragePool", value)
    return _via_sum(writer, pooled, writer.ratio(value, pooled))


def _pool(writer: Writer) -> str:
    attributes = _attributes(writer.node)
    pooled = writer.add("AveragePool", writer.node.input(0), **attributes)
    window = writer.facts.ints(int(np.prod(attributes["kernel_shape"])))
    return _via_sum(writer, pooled, writer.add("Cast", window, to=TensorProto.FLOAT))


def _via_sum(writer: Writer, mean: str, count: str) -> str:
    """A mean, by way of its sum in half."""
    total = writer.add("Mul", writer.add("Cast", mean, to=TensorProto.FLOAT), count)
    rounded = writer.add("Cast", writer.add("Cast", total, to=writer.half), to=TensorProto.FLOAT)
    return writer.add("Cast", writer.add("Div", rounded, count), to=writer.half)


def _norm(*, centred: bool) -> Callable[[Writer], str | None]:
    def write(writer: Writer) -> str | None:
        node, value = writer.node, writer.node.input(0)
        if node.attribute("axis", -1) != -1 or len(node.proto.output) > 1:
            return None
        if centred:
            value = writer.add("Sub", value, writer.mean(value, (-1,), 1))
        variance = writer.mean(writer.add("Mul", value, value), (-1,), 1)
        wide = writer.add("Add", writer.add("Cast", variance, to=TensorProto.FLOAT), _epsilon(writer))
        spread = writer.add("Cast", writer.add("Sqrt", wide), to=writer.half)
        result = writer.add("Mul", writer.add("Div", value, spread), node.input(1))
        return writer.add("Add", result, node.input(2)) if node.input(2) else result

    return write


def _epsilon(writer: Writer) -> str:
    epsilon = numpy_helper.from_array(np.array(writer.node.attribute("epsilon", 1e-5), np.float32))
    name = writer.facts.names.fresh(f"{writer.node.output}/epsilon")
    writer.nodes.append(helper.make_node("Constant", [], [name], value=epsilon))
    return name


def _product(writer: Writer) -> str | None:
    left, right = writer.node.input(0), writer.node.input(1)
    if not _in_lanes(writer) or (writer.rank(left) or 0) < 2 or (writer.rank(right) or 0) < 2:
        return None
    pairs = ((writer.lane(left, -1, lane), writer.lane(right, -2, lane)) for lane in range(LANES))
    return writer.total(writer.add("MatMul", *pair) for pair in pairs)


def _gemm(writer: Writer) -> str | None:
    node = writer.node
    if not _in_lanes(writer) or node.attribute("beta", 1.0) != 1.0:
        return None
    axes = (0 if node.attribute("transA", 0) else 1, 1 if node.attribute("transB", 0) else 0)
    attributes = {
        name: node.attribute(name, default) for name, default in (("alpha", 1.0), ("transA", 0), ("transB", 0))
    }
    result = writer.total(
        writer.add("Gemm", *(writer.lane(node.input(side), axes[side], lane) for side in (0, 1)), **attributes)
        for lane in range(LANES)
    )
    return writer.add("Add", result, node.input(2)) if node.input(2) else result


def _convolution(writer: Writer) -> str | None:
    """Lanes over input channels; where each output reads one channel the window is too small to matter."""
    node, weights = writer.node, writer.facts.shape(writer.node.input(1))
    channels = weights[1] if weights else None
    attributes = _attributes(node)
    if channels == 1:
        return writer.add("Conv", *node.proto.input, **attributes)
    if not channels or not _in_lanes(writer) or attributes.get("group", 1) != 1:
        return None
    lanes = min(LANES, channels)
    return writer.total(
        writer.add(
            "Conv",
            *(writer.lane(node.input(side), 1, lane, lanes) for side in (0, 1)),
            *([node.input(2)] if node.input(2) and lane == 0 else []),
            **attributes,
        )
        for lane in range(lanes)
    )


def _in_lanes(writer: Writer) -> bool:
    return writer.node.opset >= STRIDED_SLICE


def _fp16_only(way: Callable[[Writer], str | None]) -> Callable[[Writer], str | None]:
    """A BF16 product stays as it is, and that is no gap."""

    def write(writer: Writer) -> str | None:
        if writer.half == TensorProto.FLOAT16:
            return way(writer)
        return writer.add(writer.node.op, *writer.node.proto.input, **_attributes(writer.node))

    return write


def _attributes(node: Node) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.proto.attribute}


WAYS: dict[str, Callable[[Writer], str | None]] = {
    "ReduceSum": _reduction(None, None),
    "ReduceMean": _reduction(None, None, mean=True),
    "ReduceL1": _reduction("Abs", None),
    "ReduceL2": _reduction("Square", "Sqrt"),
    "ReduceSumSquare": _reduction("Square", None),
    "ReduceLogSum": _reduction(None, "Log"),
    "ReduceLogSumExp": _reduction("Exp", "Log"),
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "GlobalAveragePool": _global_pool,
    "AveragePool": _pool,
    "LayerNormalization": _norm(centred=True),
    "RMSNormalization": _norm(centred=False),
    "MatMul": _fp16_only(_product),
    "Gemm": _fp16_only(_gemm),
    "Conv": _fp16_only(_convolution),
}
