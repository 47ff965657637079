"""Element types of every value, propagated through operator schemas.

A schema's type variables say which inputs and outputs share a type (onnx.defs). What a schema cannot say, since it
lies in an attribute or a subgraph, has a rule of its own below.
"""

from collections.abc import Callable

from onnx import TensorProto

from worker.graph.dtype import FLOAT, type_string
from worker.graph.index import GraphIndex, constant_tensor
from worker.graph.inference import Inferred, type_text
from worker.graph.node import Node
from worker.graph.walk import subgraphs

Types = dict[str, str]


def propagate(index: GraphIndex, inferred: Inferred) -> Types:
    """The type of each value, in schema spelling. A value that nothing tells the type of is left out."""
    types: Types = {}
    for graph in {id(graph): graph for graph in index.homes.values()}.values():
        for value in graph.input:
            text = type_text(value.type) or inferred.types.get(value.name)
            if text is not None:
                types[value.name] = text
        for tensor in graph.initializer:
            types.setdefault(tensor.name, type_string(tensor.data_type))
        for sparse in graph.sparse_initializer:
            types.setdefault(sparse.values.name, f"sparse_{type_string(sparse.values.data_type)}")
    for node in index.nodes:
        _type_outputs(node, types, inferred)
    return types


def bindings(node: Node, types: Types) -> dict[str, str]:
    """Type variable -> type, as the node's inputs bind them."""
    bound: dict[str, str] = {}
    for slot in node.inputs:
        text = types.get(slot.name)
        if text is not None and slot.variable is not None and not slot.pinned:
            bound.setdefault(slot.variable, text)
    return bound


def _type_outputs(node: Node, types: Types, inferred: Inferred) -> None:
    rule = _RULES.get(node.op)
    own = rule(node, types) if rule is not None else None
    bound = bindings(node, types)
    for slot in node.outputs:
        if not slot.name:
            continue
        text = own[slot.index] if own is not None and slot.index < len(own) else None
        if text is None and slot.variable is not None:
            text = slot.variable if slot.pinned else bound.get(slot.variable)
        text = text or inferred.types.get(slot.name) or _guess(node, types)
        if text is not None:
            types[slot.name] = text


def _guess(node: Node, types: Types) -> str | None:
    """An operator without a schema: its outputs are FP32 when its floats are. Declared types have come first."""
    if node.schema is None and any(types.get(slot.name) == FLOAT for slot in node.inputs):
        return FLOAT
    return None


Outputs = list[str | None]
Rule = Callable[[Node, Types], Outputs | None]


def _from_attribute(name: str, default: int | None) -> Rule:
    def rule(node: Node, _types: Types) -> Outputs | None:
        elem = node.attribute(name, default)
        return [type_string(elem)] if elem else None

    return rule


def _like_input(position: int) -> Rule:
    return lambda node, types: [types.get(node.input(position))]


def _dtype_or_input(node: Node, types: Types) -> Outputs:
    elem = node.attribute("dtype")
    return [type_string(elem) if elem else types.get(node.input(0))]


def _constant(node: Node, _types: Types) -> Outputs | None:
    tensor = constant_tensor(node)
    return [type_string(tensor.data_type)] if tensor is not None else None


def _constant_of_shape(node: Node, _types: Types) -> Outputs:
    value: TensorProto | None = node.attribute("value")
    return [type_string(value.data_type) if value is not None else FLOAT]


def _sequence_of_inputs(node: Node, types: Types) -> Outputs:
    inner = types.get(node.input(0))
    return [f"seq({inner})" if inner else None]


def _sequence_empty(node: Node, _types: Types) -> Outputs:
    return [f"seq({type_string(node.attribute('dtype', TensorProto.FLOAT))})"]


def _element(node: Node, types: Types) -> Outputs:
    outer = types.get(node.input(0), "")
    for wrapper in ("seq(", "optional("):
        if outer.startswith(wrapper):
            return [outer[len(wrapper) : -1]]
    return [outer or None]


def _if(node: Node, types: Types) -> Outputs:
    branches = [[types.get(value.name) for value in body.output] for body in subgraphs(node.proto)]
    return [next((text for text in column if text), None) for column in zip(*branches, strict=False)]


def _loop(node: Node, types: Types) -> Outputs:
    """Loop's body gives the condition first; what it carries and what it scans follow in order."""
    return [types.get(value.name) for body in subgraphs(node.proto) for value in body.output][1:]


def _scan(node: Node, types: Types) -> Outputs:
    return [types.get(value.name) for body in subgraphs(node.proto) for value in body.output]


def _quantize(node: Node, types: Types) -> Outputs | None:
    elem = node.attribute("output_dtype")
    if elem:
        return [type_string(elem)]
    return [types.get(node.input(2)) or type_string(TensorProto.UINT8)]


_RULES: dict[str, Rule] = {
    "Cast": _from_attribute("to", None),
    "CastLike": _like_input(1),
    "BitCast": _from_attribute("to", None),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "RandomNormal": _from_attribute("dtype", TensorProto.FLOAT),
    "RandomUniform": _from_attribute("dtype", TensorProto.FLOAT),
    "RandomNormalLike": _dtype_or_input,
    "RandomUniformLike": _dtype_or_input,
    "Bernoulli": _dtype_or_input,
    "EyeLike": _dtype_or_input,
    "Multinomial": _from_attribute("dtype", TensorProto.INT32),
    "HannWindow": _from_attribute("output_datatype", TensorProto.FLOAT),
    "HammingWindow": _from_attribute("output_datatype", TensorProto.FLOAT),
    "BlackmanWindow": _from_attribute("output_datatype", TensorProto.FLOAT),
    "MelWeightMatrix": _from_attribute("output_datatype", TensorProto.FLOAT),
    "QuantizeLinear": _quantize,
    "SequenceConstruct": _sequence_of_inputs,
    "SplitToSequence": _sequence_of_inputs,
    "SequenceEmpty": _sequence_empty,
    "SequenceAt": _element,
    "ConcatFromSequence": _element,
    "OptionalGetElement": _element,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
}
