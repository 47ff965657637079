"""Attention cores: QK^T -> scale, mask -> softmax -> PV, found from the softmax outwards.

A core that is *bounded* is computed in the trunk dtype as a whole, queries and keys being cast back before QK^T, so
that TensorRT's fused kernel (which sums the softmax in FP32) can take it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import Declined, ordered
from worker.precision.ops import MOVEMENT

_ON_THE_WAY_UP = frozenset(
    {"Mul", "Div", "Add", "Sub", "Where", "Max", "Min", "Clip", "Cast", "Tanh", "Identity", "Dropout", "Sum"}
) | (MOVEMENT - {"Gather", "GatherND", "Concat"})
_ON_THE_WAY_DOWN = frozenset({"Mul", "Div", "Add", "Sub", "Where", "Cast", "Identity", "Dropout", "Neg"}) | (
    MOVEMENT - {"Gather", "GatherND", "Concat"}
)
_PRODUCTS = frozenset({"MatMul", "Einsum", "Gemm"})
_FUSED = frozenset({"Attention"})
_LONGEST_WAY = 24
_FUSED_MASK = 3
LONGEST_SAFE_KEYS = 60_000
"""A fused FP16 core sums up to one per key; from 65,504 keys on that sum can be infinite."""


@dataclass(frozen=True, slots=True)
class AttentionCore:
    """`softmax` names the core. `masks` are the values that scores are masked with or shifted by."""

    softmax: Node
    nodes: tuple[Node, ...]
    masks: tuple[str, ...] = field(default=())


def find_cores(graph: Graph) -> Iterator[AttentionCore | Declined]:
    """Every softmax between two products of activations, and every Attention operator."""
    for node in graph.nodes:
        if node.op in _FUSED and graph.is_float(node.input(0)):
            mask = node.input(_FUSED_MASK)
            yield AttentionCore(node, (node,), (mask,) if graph.is_float(mask) else ())
        elif node.is_a("Softmax") and graph.is_float(node.input(0)):
            yield _core_of(graph, node)


def fused_in_one(core: AttentionCore) -> bool:
    return core.softmax.op in _FUSED


def keys(graph: Graph, core: AttentionCore) -> int | None:
    """The number of keys, where the shape tells."""
    name = core.softmax.input(1 if fused_in_one(core) else 0)
    shape = graph.shape(name)
    if not shape:
        return None
    return shape[-2] if fused_in_one(core) and len(shape) > 1 else shape[-1]


def _core_of(graph: Graph, softmax: Node) -> AttentionCore | Declined:
    up = _Up(graph)
    if not up.climb(softmax.input(0)):
        return Declined("attention core", softmax.label, "its scores are not a product of two activations")
    down = _down(graph, softmax)
    if not down:
        return Declined("attention core", softmax.label, "its result does not go into a product with an activation")
    return AttentionCore(softmax, ordered({softmax} | up.nodes | down), tuple(dict.fromkeys(up.masks)))


@dataclass(slots=True)
class _Up:
    """From the softmax up to QK^T: nodes on the way, and what joins from the side."""

    graph: Graph
    nodes: set[Node] = field(default_factory=set)
    masks: list[str] = field(default_factory=list)
    _known: dict[str, bool] = field(default_factory=dict)

    def climb(self, name: str, depth: int = 0) -> bool:
        """Whether the value comes from a product of two activations."""
        if name not in self._known:
            self._known[name] = False  # a value that is asked for again on its own way is no way
            self._known[name] = self._climb(name, depth)
        return self._known[name]

    def _climb(self, name: str, depth: int) -> bool:
        node = self.graph.producer(name)
        if node is None or depth > _LONGEST_WAY or name in self.graph.static or not self.graph.is_float(name):
            return False
        if node.op in _PRODUCTS:
            return self._take_product(node)
        if node.op not in _ON_THE_WAY_UP:
            return False
        inputs = self.graph.float_inputs(node)
        ways = {value for value in dict.fromkeys(inputs) if self.climb(value, depth + 1)}
        if not ways:
            return False
        self.nodes.add(node)
        if node.is_a("Add", "Sub", "Where", "Sum", "Max", "Min"):
            self.masks.extend(value for value in inputs if value not in ways)
        return True

    def _take_product(self, node: Node) -> bool:
        operands = self.graph.float_inputs(node)[:2]
        if len(operands) < 2 or any(name in self.graph.static for name in operands):  # a projection
            return False
        self.nodes.add(node)
        return True


def _down(graph: Graph, softmax: Node) -> set[Node]:
    """Nodes on the ways from the softmax to a product with an activation, that product included."""
    before: dict[Node, Node | None] = {}
    ends: list[Node] = []
    pending: list[tuple[str, Node | None, int]] = [(softmax.output, None, 0)]
    while pending:
        name, via, depth = pending.pop()
        for node in graph.consumers(name):
            if node in before or depth > _LONGEST_WAY:
                continue
            before[node] = via
            if node.op in _PRODUCTS:
                if not any(value in graph.static for value in graph.float_inputs(node)[:2]):
                    ends.append(node)
            elif node.op in _ON_THE_WAY_DOWN:
                pending.extend((value, node, depth + 1) for value in graph.float_outputs(node))
    found: set[Node] = set()
    for end in ends:
        step: Node | None = end
        while step is not None and step not in found:
            found.add(step)
            step = before[step]
    return found
