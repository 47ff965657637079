"""The converted graph as runs of nodes of one kind, so that a view can draw where the islands lie."""

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from onnx import ModelProto, NodeProto

from worker.graph import walk
from worker.graph.dtype import FLOAT, HALF_TYPES
from worker.graph.types import Types
from worker.precision.report import NodeRun

Kind = Literal["half", "fp32", "cast", "other"]

_HALVES = frozenset(half.type_string for half in HALF_TYPES.values())


def node_runs(model: ModelProto, types: Types) -> tuple[NodeRun, ...]:
    """`types` are those of `model`."""
    return tuple(NodeRun(kind=kind, nodes=sum(1 for _ in run)) for kind, run in groupby(_kinds(model, types)))


def _kinds(model: ModelProto, types: Types) -> Iterator[Kind]:
    for graph in walk.graphs(model.graph):
        for node in graph.node:
            if node.op_type != "Constant":
                yield _kind(node, types)


def _kind(node: NodeProto, types: Types) -> Kind:
    """What it makes counts; of a node that makes no float (a comparison, say), what it reads."""
    if node.op_type == "Cast":
        return "cast"
    for names in (node.output, node.input):
        found = {types.get(name) for name in names}
        if found & _HALVES:
            return "half"
        if FLOAT in found:
            return "fp32"
    return "other"
