"""Valid graphs that ONNX Runtime refuses, in terms that it takes: the same values, whatever the graph is run for.

Left alone is what it runs as it stands. Values keep their names, so graphs can be compared before and after.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onnx import GraphProto, NodeProto, helper

from worker.graph import walk
from worker.graph.index import build_index
from worker.graph.inference import Inferred
from worker.graph.names import NameSource, all_names
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.graph.types import Types, propagate

_BOOL = "tensor(bool)"


def make_runnable(skeleton: Skeleton) -> None:
    """Rewrite a loaded model in place; in half emulation, after `emulate`, so that nothing new is rounded."""
    index = build_index(skeleton)
    suspects = [node for node in index.nodes if node.op in _REWRITES and _key(node.proto)]
    if not suspects:
        return
    names, types = NameSource(all_names(index.main)), propagate(index, Inferred())
    instead: dict[str, list[NodeProto]] = {}
    for node in suspects:
        writer = _Writer(node, types, names)
        _REWRITES[node.op](writer)
        if writer.nodes:
            instead[_key(node.proto)] = writer.nodes
    # Inner graphs first: the nodes that carry them are copied.
    for graph in reversed(list(walk.graphs(index.main))):
        _replace(graph, instead)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the nodes that stand for one node; none leave it as it is."""

    node: Node
    types: Types
    names: NameSource
    nodes: list[NodeProto] = field(default_factory=list)

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or self.names.fresh(f"{_key(self.node.proto)}/{op}")
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name


def _where_of_bools(writer: _Writer) -> None:
    """Where chooses between numbers and strings there, not between truths."""
    condition, chosen, other = writer.node.proto.input
    if writer.types.get(writer.node.output) != _BOOL:
        return
    yes = writer.add("And", condition, chosen)
    no = writer.add("And", writer.add("Not", condition), other)
    writer.add("Or", yes, no, output=writer.node.output)


def _attention_with_mask(writer: _Writer) -> None:
    """Masks have a row for each query there; ONNX broadcasts one row to all."""
    queries, mask = writer.node.input(0), writer.node.input(3)
    if not mask:
        return
    rows = writer.add("Shape", queries, start=-2, end=-1)  # the last axis but one, with heads and without
    shape = writer.add("Concat", rows, writer.add("Constant", value_ints=[1]), axis=0)
    attention = NodeProto()
    attention.CopyFrom(writer.node.proto)
    attention.input[3] = writer.add("Expand", mask, shape)
    writer.nodes.append(attention)


_REWRITES: dict[str, Callable[[_Writer], None]] = {
    "Attention": _attention_with_mask,
    "Where": _where_of_bools,
}


def _replace(graph: GraphProto, instead: dict[str, list[NodeProto]]) -> None:
    if not any(_key(node) in instead for node in graph.node):
        return
    protos = [proto for node in graph.node for proto in instead.get(_key(node), [node])]
    copies = [NodeProto.FromString(proto.SerializeToString()) for proto in protos]
    del graph.node[:]
    graph.node.extend(copies)


def _key(node: NodeProto) -> str:
    return next(filter(None, node.output), "")
