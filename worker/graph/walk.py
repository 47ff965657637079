"""Walks over the parts of a `ModelProto`, subgraphs included, without recursion."""

from collections.abc import Iterator

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs that a node carries (If, Loop, Scan and the like), in attribute order."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def graphs(root: GraphProto) -> Iterator[GraphProto]:
    """The graph itself, then every graph nested in it, outer before inner."""
    pending = [root]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            if node.attribute:  # most nodes have none, and this is walked often
                pending.extend(subgraphs(node))


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor with values: initializers and tensor attributes, in subgraphs and functions too."""
    for graph in graphs(model.graph):
        yield from graph.initializer
        for node in graph.node:
            yield from _attribute_tensors(node)
    for function in model.functions:
        for node in function.node:
            yield from _attribute_tensors(node)


def _attribute_tensors(node: NodeProto) -> Iterator[TensorProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            yield attribute.t
        elif attribute.type == AttributeProto.TENSORS:
            yield from attribute.tensors


def opsets(model: ModelProto) -> dict[str, int]:
    """Domain -> version; the default domain is spelled `""`."""
    return {("" if entry.domain == "ai.onnx" else entry.domain): entry.version for entry in model.opset_import}


def nbytes(tensor: TensorProto) -> int:
    """The bytes that the tensor's dims and dtype ask for. 4-bit types are packed two a byte."""
    count = 1
    for dim in tensor.dims:
        count *= dim
    if tensor.data_type in (TensorProto.UINT4, TensorProto.INT4, TensorProto.FLOAT4E2M1):
        return (count + 1) // 2
    return count * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
