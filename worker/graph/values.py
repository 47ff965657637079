"""What kind of value each one is: static (known before the engine runs) or dense (an activation)."""

from worker.graph.dtype import FLOAT, OTHER_FLOATS
from worker.graph.index import GraphIndex
from worker.graph.inference import Inferred
from worker.graph.node import Node
from worker.graph.types import Types
from worker.graph.walk import subgraphs

LONG_DOT_PRODUCT = 16
"""A dot product of at most this many terms mixes coordinates or frequencies, not learned features."""

_FLOATS = OTHER_FLOATS | {FLOAT}
_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_ALWAYS_DENSE = frozenset(
    {"Conv", "ConvTranspose", "ConvInteger", "DeformConv", "LSTM", "GRU", "RNN", "Attention", "QLinearConv"}
)
_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum", "MatMulInteger", "QLinearMatMul"})


def find_static(index: GraphIndex) -> frozenset[str]:
    static = set(index.weights)
    for node in index.nodes:
        if node.op in _RANDOM or node.control_flow or (not node.inputs and not node.is_a("Constant")):
            continue
        if all(slot.name in static for slot in node.inputs if slot.name):
            static.update(slot.name for slot in node.outputs if slot.name)
    return frozenset(static)


def find_dense(index: GraphIndex, types: Types, inferred: Inferred, static: frozenset[str]) -> frozenset[str]:
    dense: set[str] = set()
    for node in index.nodes:
        if dense.isdisjoint(_reads(node)) and not _makes_dense(index, node, inferred, static):
            continue
        dense.update(slot.name for slot in node.outputs if types.get(slot.name) in _FLOATS)
    return frozenset(dense)


def _reads(node: Node) -> set[str]:
    """What the node's results are made of: its inputs, and what its bodies give."""
    return {slot.name for slot in node.inputs} | {value.name for body in subgraphs(node.proto) for value in body.output}


def _makes_dense(index: GraphIndex, node: Node, inferred: Inferred, static: frozenset[str]) -> bool:
    if all(slot.name in static for slot in node.inputs):
        return False
    if node.op in _ALWAYS_DENSE or node.schema is None:
        return True
    if node.is_a("Einsum"):
        return _contracts(node.attribute("equation", b"").decode())
    return node.op in _PRODUCTS and not _short_product(index, node, inferred)


def _short_product(index: GraphIndex, node: Node, inferred: Inferred) -> bool:
    for position, axis in (
        (0, 0 if node.attribute("transA", 0) else -1),
        (1, -1 if node.attribute("transB", 0) else -2),
    ):
        name = node.input(position)
        tensor = index.weights.get(name)
        shape = tuple(tensor.dims) if tensor is not None else inferred.shapes.get(name)
        if not shape:
            continue
        length = shape[axis] if len(shape) > 1 else shape[0]
        if length is not None:
            return length <= LONG_DOT_PRODUCT
    return False


def _contracts(equation: str) -> bool:
    """Whether an Einsum sums over anything (an outer product does not)."""
    terms, arrow, output = equation.replace(" ", "").partition("->")
    if not arrow:
        return True
    return any(letter.isalpha() and letter not in output for letter in terms)
