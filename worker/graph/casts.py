"""Casts to FP32 of what is FP32 already: markers that `.float()` leaves in an export.

They are taken out, so that patterns see the dataflow; each read that went through one is remembered as a mark.
"""

from onnx import TensorProto

from worker.graph.dtype import FLOAT
from worker.graph.index import GraphIndex
from worker.graph.node import Node
from worker.graph.types import Types

Marks = set[tuple[str, int]]
"""Reads that went through a marker: the reader's first output, and the input position."""


def strip_noop_casts(index: GraphIndex, types: Types) -> tuple[Marks, int]:
    """Rewires readers in place; returns the marks, and how many Casts went."""
    noops = [node for node in index.nodes if _is_noop(index, node, types)]
    alias: dict[str, str] = {}
    for node in noops:  # in topological order: the source of a chain is resolved before its end
        source = node.input(0)
        alias[node.output] = alias.get(source, source)
    marks: Marks = set()
    for node in index.nodes:
        for slot in node.inputs:
            if slot.name in alias:
                node.proto.input[slot.index] = alias[slot.name]
                marks.add((node.output, slot.index))
    _remove(noops)
    return marks, len(noops)


def _is_noop(index: GraphIndex, node: Node, types: Types) -> bool:
    return (
        node.is_a("Cast")
        and node.attribute("to") == TensorProto.FLOAT
        and types.get(node.input(0)) == FLOAT
        and node.output not in index.outputs
    )


def _remove(nodes: list[Node]) -> None:
    for graph in {id(node.graph): node.graph for node in nodes}.values():
        gone = {node.output for node in nodes if node.graph is graph}
        kept = [proto for proto in graph.node if not (proto.output and proto.output[0] in gone)]
        del graph.node[:]
        graph.node.extend(kept)
