"""The value of a small expression of constants, so that it is judged by what it gives and not by what goes into it."""

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from worker.graph import walk
from worker.graph.graph import Graph

_MOST_NODES = 64


def static_value(graph: Graph, name: str) -> NDArray[np.float32] | None:
    """None when the expression is long, reads large constants, or cannot be evaluated here."""
    parts = _expression(graph, name)
    if parts is None:
        return None
    nodes, constants = parts
    wanted = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    body = helper.make_graph(nodes, "static", [], [wanted], constants)
    opsets = [helper.make_opsetid(domain, version) for domain, version in walk.opsets(graph.model).items()]
    try:
        (value,) = ReferenceEvaluator(helper.make_model(body, opset_imports=opsets)).run(None, {})
    except Exception:  # the evaluator raises whatever its operators do; then the inputs decide
        return None
    return np.asarray(value, np.float32).reshape(-1)


def _expression(graph: Graph, name: str) -> tuple[list[NodeProto], list[TensorProto]] | None:
    nodes: dict[int, NodeProto] = {}
    constants: list[TensorProto] = []
    pending, seen = [name], {name}
    while pending:
        value = pending.pop()
        tensor, node = graph.weight(value), graph.producer(value)
        if tensor is not None:
            if graph.index.skeleton.payload(tensor) is not None:
                return None
            named = TensorProto()
            named.CopyFrom(tensor)
            named.name = value
            constants.append(named)
        elif node is None or node.control_flow or len(nodes) >= _MOST_NODES:
            return None
        else:
            nodes[node.index] = node.proto
            fresh = [one for one in node.proto.input if one and one not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return [nodes[index] for index in sorted(nodes)], constants
