"""Which of a node's type variables may be in the trunk dtype, by its schema at the file's opset and by TensorRT."""

from dataclasses import dataclass

from worker.graph.dtype import FLOAT, HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node

_HELD: dict[str, frozenset[str]] = {
    "Resize": frozenset({"T2"}),  # roi: TensorRT reads it as FP32, like scales
    "Dropout": frozenset({"T1"}),  # ratio
    "BatchNormalization": frozenset({"T1", "T2"}),  # scale, bias and statistics
}
"""Variables that stay FP32 while the rest of the node is in half."""

_TENSORRT_REFUSES: dict[tuple[str, str], str] = {
    ("GRU", "bf16"): "TensorRT's parser mixes FP32 constants into a BF16 GRU",
    ("ConvTranspose", "bf16"): "TensorRT for RTX parses a BF16 ConvTranspose, but has no kernel to build it from",
    **{
        (op, "bf16"): f"TensorRT's parser takes {op} in FP32 and FP16 only"
        for op in ("HardSwish", "LpNormalization", "LpPool", "Mish")
    },
    **{
        (op, half): f"TensorRT's parser takes {op} in FP32 only"
        for op in ("Celu", "MeanVarianceNormalization", "Range")
        for half in ("fp16", "bf16")
    },
}
"""Where TensorRT is tighter than the schema: found by parsing and building every operator test in each dtype."""

_LSTM_PEEPHOLES = 7
_FP32_ONLY: dict[str, str] = {
    "QuantizeLinear": "quantisation scales stay FP32",
    "DequantizeLinear": "quantisation scales stay FP32",
    "DynamicQuantizeLinear": "quantisation scales stay FP32",
    "BitCast": "it reads the bits of its input",
    "EyeLike": "its dtype is an attribute",
    "RandomNormal": "its dtype is an attribute",
    "RandomNormalLike": "its dtype is an attribute",
    "RandomUniform": "its dtype is an attribute",
    "RandomUniformLike": "its dtype is an attribute",
    "Bernoulli": "its dtype is an attribute",
    "Multinomial": "its dtype is an attribute",
    "HannWindow": "its dtype is an attribute",
    "HammingWindow": "its dtype is an attribute",
    "BlackmanWindow": "its dtype is an attribute",
    "MelWeightMatrix": "its dtype is an attribute",
}


@dataclass(frozen=True, slots=True)
class Legality:
    """`variables` that may be half, or the `reason` why none may."""

    variables: frozenset[str]
    reason: str | None = None


def legality(graph: Graph, node: Node, half: HalfType) -> Legality:
    if node.control_flow:
        return _refused(f"{node.op} carries subgraphs, whose boundaries stay FP32")
    if node.schema is None:
        return _refused(f"{node.op} is an operator that atoll does not know")
    if node.schema.domain:
        return _refused(f"{node.op} lies outside ai.onnx")
    if node.is_a("BatchNormalization") and node.attribute("training_mode", 0):
        return _refused("BatchNormalization in training mode makes statistics")
    limit = _tensorrt_limit(graph, node, half)
    if limit is not None:
        return _refused(limit)
    if node.op in _FP32_ONLY:
        return _refused(_FP32_ONLY[node.op])
    if any(_is_container(graph.types.get(slot.name)) for slot in (*node.inputs, *node.outputs)):
        return _refused("it handles a sequence or an optional of FP32")
    return _by_schema(graph, node, half)


def _tensorrt_limit(graph: Graph, node: Node, half: HalfType) -> str | None:
    """Where TensorRT is tighter than the schema: found by parsing and building every operator test in each dtype."""
    if id(node.graph) in graph.scan_bodies:
        return "TensorRT builds no half in the body of a Scan"
    if node.is_a("GRU", "LSTM", "RNN") and node.attribute("layout", 0):
        return f"TensorRT builds a batch-wise {node.op} in FP32 only"
    if node.is_a("LSTM") and node.input(_LSTM_PEEPHOLES):
        return "TensorRT's parser takes an LSTM with peepholes in FP32 only"
    return _TENSORRT_REFUSES.get((node.op, half.name))


def has_no_half_form(graph: Graph, node: Node, half: HalfType) -> bool:
    """Whether it is the opset alone that keeps the node in FP32."""
    if node.control_flow or node.schema is None or node.schema.domain:
        return False
    if node.op in _FP32_ONLY or (node.op, half.name) in _TENSORRT_REFUSES:
        return False
    return bool(_variables(graph, node)) and not _by_schema(graph, node, half).variables


def float_variables(graph: Graph, node: Node) -> dict[str, bool]:
    """The schema's variables that are FP32 here -> whether an input has it (else only outputs do)."""
    found: dict[str, bool] = {}
    for slot in node.inputs:
        if slot.variable is not None and graph.types.get(slot.name) == FLOAT:
            found[slot.variable] = True
    for slot in node.outputs:
        if slot.variable is not None and graph.types.get(slot.name) == FLOAT:
            found.setdefault(slot.variable, False)
    return found


def _by_schema(graph: Graph, node: Node, half: HalfType) -> Legality:
    variables = _variables(graph, node)
    if not variables:
        return _refused(f"{node.op} takes FP32 only")
    illegal = {name for name in variables if not node.allows(name, half.type_string)}
    blocking = {name for name in illegal if variables[name] or len(variables) == 1}
    if blocking:
        return _refused(f"{node.op} at opset {node.opset} has no {half.name} form")
    return Legality(frozenset(variables) - illegal)


def _variables(graph: Graph, node: Node) -> dict[str, bool]:
    """The FP32 variables that a schema could let be half, and TensorRT would."""
    held = _HELD.get(node.op, frozenset())
    return {name: read for name, read in float_variables(graph, node).items() if "(" not in name and name not in held}


def _is_container(type_text: str | None) -> bool:
    return type_text is not None and "(" in type_text.removeprefix("tensor(") and "float" in type_text


def _refused(reason: str) -> Legality:
    return Legality(frozenset(), reason)
