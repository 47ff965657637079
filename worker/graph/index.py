"""One flat index over a model and all its subgraphs: who makes a value, who reads it, what it holds."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from worker.graph import walk
from worker.graph.node import Node, make_node
from worker.graph.skeleton import Skeleton


@dataclass(frozen=True, slots=True)
class Use:
    """A node reads a value at an input position."""

    node: Node
    position: int


@dataclass(slots=True)
class GraphIndex:
    """Built once from a loaded skeleton; never mutated afterwards. Value names are unique over all scopes."""

    skeleton: Skeleton
    nodes: list[Node] = field(default_factory=list)
    producers: dict[str, Node] = field(default_factory=dict)
    uses: dict[str, list[Use]] = field(default_factory=dict)
    weights: dict[str, TensorProto] = field(default_factory=dict)
    inputs: dict[str, GraphProto] = field(default_factory=dict)
    outputs: dict[str, list[GraphProto]] = field(default_factory=dict)
    homes: dict[str, GraphProto] = field(default_factory=dict)
    _arrays: dict[str, NDArray[np.generic] | None] = field(default_factory=dict)

    @property
    def model(self) -> ModelProto:
        return self.skeleton.model

    @property
    def main(self) -> GraphProto:
        return self.model.graph

    def producer(self, name: str) -> Node | None:
        return self.producers.get(name)

    def consumers(self, name: str) -> list[Node]:
        return [use.node for use in self.uses.get(name, ())]

    def array(self, name: str) -> NDArray[np.generic] | None:
        """A small constant's values (followed through shape-only nodes and casts); None for all else."""
        if name not in self._arrays:
            self._arrays[name] = self._small_array(name)
        return self._arrays[name]

    def scalar(self, name: str) -> float | None:
        """The value of a constant with one element."""
        values = self.array(name)
        return float(values.reshape(-1)[0]) if values is not None and values.size == 1 else None

    def _small_array(self, name: str) -> NDArray[np.generic] | None:
        seen = 0
        while name not in self.weights:
            node = self.producers.get(name)
            if (
                node is None
                or seen > 8
                or not node.is_a("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Expand")
            ):
                return None
            name, seen = node.input(0), seen + 1
        tensor = self.weights[name]
        if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type == TensorProto.STRING:
            return None
        return numpy_helper.to_array(tensor)


def build_index(skeleton: Skeleton) -> GraphIndex:
    """Indexes nodes in topological order; a subgraph's nodes come before the node that carries it."""
    index = GraphIndex(skeleton)
    opsets = walk.opsets(skeleton.model)
    for graph in walk.graphs(skeleton.model.graph):
        _index_values(index, graph)
    for proto, graph in _in_order(skeleton.model.graph):
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        node = make_node(len(index.nodes), proto, graph, opsets.get(domain, 1))
        index.nodes.append(node)
        _index_node(index, node)
    return index


def constant_tensor(node: Node) -> TensorProto | None:
    """The tensor of a Constant node; its short forms are put as one `value` first."""
    if not node.is_a("Constant"):
        return None
    for attribute in node.proto.attribute:
        if attribute.name == "value":
            tensor: TensorProto = attribute.t
            return tensor
    return None


def _index_values(index: GraphIndex, graph: GraphProto) -> None:
    inputs = {value.name for value in graph.input}
    for value in graph.input:
        index.inputs[value.name] = graph
        index.homes[value.name] = graph
    for value in graph.output:
        index.outputs.setdefault(value.name, []).append(graph)
    for tensor in graph.initializer:
        index.homes[tensor.name] = graph
        if tensor.name not in inputs:
            index.weights[tensor.name] = tensor


def _index_node(index: GraphIndex, node: Node) -> None:
    for slot in node.inputs:
        if slot.name:
            index.uses.setdefault(slot.name, []).append(Use(node, slot.index))
    for slot in node.outputs:
        if slot.name:
            index.producers[slot.name] = node
            index.homes[slot.name] = node.graph
    tensor = constant_tensor(node)
    if tensor is not None:
        index.weights[node.output] = tensor


def _in_order(root: GraphProto) -> Iterator[tuple[NodeProto, GraphProto]]:
    """Nodes of all scopes; what a subgraph reads from outside has come before it."""
    pending = [iter([(node, root) for node in root.node])]
    open_nodes: list[tuple[NodeProto, GraphProto]] = []
    while pending:
        item = next(pending[-1], None)
        if item is None:
            pending.pop()
            if open_nodes:
                yield open_nodes.pop()
            continue
        inner = [(node, body) for body in walk.subgraphs(item[0]) for node in body.node]
        if not inner:
            yield item
            continue
        open_nodes.append(item)
        pending.append(iter(inner))
