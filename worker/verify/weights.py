"""Weights of a skeleton: mapped from the files they lie in, measured, or left out."""

from pathlib import Path

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from worker.graph import walk
from worker.graph.skeleton import Skeleton


def weight_bytes(skeleton: Skeleton) -> int:
    """Bytes of the weights that lie in files."""
    return sum(payload.length for payload in skeleton.payloads.values())


def map_weights(skeleton: Skeleton, folder: Path) -> None:
    """Let the model's large tensors refer to byte ranges of the files they come from, by paths relative to `folder`.

    The ranges may lie inside an ONNX file: nothing is copied.
    """
    hoist_large_constants(skeleton.model)
    for graph in walk.graphs(skeleton.model.graph):
        for tensor in graph.initializer:
            payload = skeleton.payload(tensor)
            if payload is None:
                continue
            del tensor.external_data[:]
            location = payload.path.relative_to(folder).as_posix()
            for key, value in (("location", location), ("offset", payload.offset), ("length", payload.length)):
                tensor.external_data.add(key=key, value=str(value))


def hoist_large_constants(model: ModelProto) -> None:
    """Constant nodes whose value lies in a file become initializers: only those may have external data."""
    for graph in reversed(list(walk.graphs(model.graph))):
        for node in graph.node:
            value = _large_value(node)
            if value is not None:
                tensor = graph.initializer.add()
                tensor.CopyFrom(value)
                tensor.name = node.output[0]
        _keep_nodes(graph, [node for node in graph.node if _large_value(node) is None])


def without_weights(model: ModelProto) -> ModelProto:
    """A copy in which each large tensor is an input of the main graph: what type and shape checks need, and no more."""
    bare = ModelProto()
    bare.CopyFrom(model)
    hoist_large_constants(bare)
    for graph in walk.graphs(bare.graph):
        given = {value.name for value in graph.input}
        large = [tensor for tensor in graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
        for tensor in large:
            if tensor.name not in given:
                value = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
                bare.graph.input.append(value)
            graph.initializer.remove(tensor)
    return bare


def _large_value(node: NodeProto) -> TensorProto | None:
    if node.op_type != "Constant" or not node.attribute:
        return None
    value = node.attribute[0].t
    return value if value.data_location == TensorProto.EXTERNAL else None


def _keep_nodes(graph: GraphProto, kept: list[NodeProto]) -> None:
    if len(kept) == len(graph.node):
        return
    copies = [NodeProto.FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(copies)
