"""What can be said of a converted graph without its inputs. Texts are empty where all is well."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto

from service.errors import AtollError, InvalidGraph
from worker.engine.builder import network_from_onnx
from worker.engine.toolchains import toolchain_named
from worker.graph import walk
from worker.graph.order import sort_nodes

Answer = dict[str, Any]

TOOLCHAIN = "tensorrt-rtx"


def validity(target: Path, converted: ModelProto, judged: bool) -> Answer:
    """The checker's words on a result, and on the same with its nodes in order, as some runtimes put them.

    Nothing is held against a result whose source does not pass either (`judged` false).
    """
    fault = checked(target) if judged else ""
    return {"checker": fault, "reordered": fault and _checked_in_order(target, converted)}


def _checked_in_order(target: Path, converted: ModelProto) -> str:
    try:
        for graph in walk.graphs(converted.graph):
            sort_nodes(graph)
    except InvalidGraph as cycle:
        return first_line(cycle)
    path = target.with_suffix(".ordered")
    onnx.save(converted, path)
    return checked(path)


def checked(path: Path) -> str:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # the checker's and shape inference's errors share no base
        return first_line(error)
    return ""


def interface(source: ModelProto, converted: ModelProto) -> str:
    """Names and types of public inputs and outputs, in order; symbols of dims may be renamed."""
    before, after = (_signatures(model) for model in (source, converted))
    return "" if before == after else f"was {_changed(before, after)}, is {_changed(after, before)}"


def _signatures(model: ModelProto) -> list[str]:
    """An input with an initializer is a weight: old files have to list them all."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    return [f"{value.name}: {_type(value)}" for value in (*inputs, *model.graph.output)]


def _type(value: ValueInfoProto) -> str:
    text = value.type.WhichOneof("value")
    inner = value.type
    while inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        inner = getattr(inner, inner.WhichOneof("value")).elem_type
    return f"{text} {TensorProto.DataType.Name(inner.tensor_type.elem_type)}"


def _changed(one: list[str], other: list[str]) -> str:
    return ", ".join(text for text in one if text not in other) or "in another order"


def has_half(model: ModelProto) -> bool:
    """Whether anything in the graph is FP16."""
    half = TensorProto.FLOAT16
    for graph in walk.graphs(model.graph):
        if any(tensor.data_type == half for tensor in graph.initializer):
            return True
        for node in graph.node:
            if any(_names_half(attribute, half) for attribute in node.attribute):
                return True
    return False


def _names_half(attribute: onnx.AttributeProto, half: int) -> bool:
    if attribute.name in ("to", "dtype"):
        return bool(attribute.i == half)
    return attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == half


def parse(model: str) -> Answer:
    """What TensorRT for RTX says of a graph, strongly typed."""
    try:
        network_from_onnx(Path(model), toolchain_named(TOOLCHAIN), ignore)
    except AtollError as error:
        return {"parse": first_line(error)}
    return {"parse": ""}


def ignore(_event: Mapping[str, Any]) -> None:
    """The builder's progress; nobody watches."""


def first_line(error: BaseException) -> str:
    text = error.detail if isinstance(error, AtollError) else str(error)
    return " ".join(text.split())[:200] or type(error).__name__
