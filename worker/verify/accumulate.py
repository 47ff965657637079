"""Pessimistic accumulation: sums, means, pools, softmax, norms and FP16 dot products add up in half, as a GPU may.

The contracted axis is dealt out to `LANES` lanes (element i to lane i mod LANES); each lane's sum is rounded to half,
and lanes are added up one after the other, rounded each time. So a sum beyond the half's range is infinite here even
where its mean is not. Only FP16 products accumulate in half: BF16 tensor cores have FP32 accumulators alone (PTX ISA,
`mma` and `wgmma`: `.bf16` operands take `.f32` accumulators).
"""

from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto
from onnx.inliner import inline_selected_functions

from worker.graph import walk
from worker.graph.index import build_index
from worker.graph.inference import infer
from worker.graph.load import prepare
from worker.graph.names import NameSource, all_names
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.verify.addition import WAYS
from worker.verify.emulate import known_types
from worker.verify.lanes import HALVES, Facts, Writer
from worker.verify.weights import hoist_large_constants

_FUNCTIONS = ("Attention", "GroupNormalization", "MeanVarianceNormalization")
# Operators that add up inside and have no way below: their kernels accumulate in FP32, or nobody can tell.
_OTHER = frozenset(
    {
        "Attention", "ConvTranspose", "CumSum", "Einsum", "GRU", "GlobalLpPool", "GroupNormalization",
        "InstanceNormalization", "LRN", "LSTM", "LpNormalization", "LpPool", "MeanVarianceNormalization", "RNN",
    }
)  # fmt: skip


def accumulate_in_half(skeleton: Skeleton) -> tuple[Node, ...]:
    """Rewrite a loaded model in place, before it is emulated, so that what is in half also adds up in half.

    Returns the nodes in half that were left as they were. Raises Unverifiable as `known_types` does.
    """
    _open_functions(skeleton)
    hoist_large_constants(skeleton.model)
    index = build_index(skeleton)
    facts = Facts(index, known_types(index), infer(index.model).shapes, NameSource(all_names(index.main)))
    rewrite = _Rewrite(facts)
    nodes: dict[int, list[Node]] = {}
    for node in index.nodes:
        nodes.setdefault(id(node.graph), []).append(node)
    # Inner graphs first: the nodes that carry them are copied.
    for graph in reversed(list(walk.graphs(index.main))):
        protos = [proto for node in nodes.get(id(graph), ()) for proto in rewrite.node(node)]
        _replace_nodes(graph, protos)
    index.main.initializer.extend(facts.constants.values())
    return tuple(rewrite.left)


def _open_functions(skeleton: Skeleton) -> None:
    """Operators that ONNX defines by others become those, so that the sums inside them can be seen."""
    wanted = [("", op) for op in _FUNCTIONS if any(node.op_type == op for node in skeleton.model.graph.node)]
    if not wanted:
        return
    skeleton.model = inline_selected_functions(skeleton.model, wanted, inline_schema_functions=True)
    prepare(skeleton)


def _replace_nodes(graph: GraphProto, protos: list[NodeProto]) -> None:
    copies = []
    for proto in protos:
        copies.append(NodeProto())
        copies[-1].CopyFrom(proto)
    del graph.node[:]
    graph.node.extend(copies)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    facts: Facts
    left: list[Node] = field(default_factory=list)

    def node(self, node: Node) -> list[NodeProto]:
        """What stands for a node: itself, or nodes that add up in lanes."""
        if not node.proto.output or self.facts.types.get(node.output) not in HALVES:
            return [node.proto]
        way = WAYS.get(node.op)
        if way is None:
            self._leave(node, node.op in _OTHER)
            return [node.proto]
        writer = Writer(self.facts, node)
        result = way(writer)
        if result is None:
            self._leave(node, True)
            return [node.proto]
        writer.add("Identity", result, output=node.output)
        return writer.nodes

    def _leave(self, node: Node, worth_telling: bool) -> None:
        if worth_telling:
            self.left.append(node)
