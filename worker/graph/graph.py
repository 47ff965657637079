"""The analysed graph: index, types, shapes, and what kind of value each one is. Patterns look at nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from worker.graph.casts import strip_noop_casts
from worker.graph.dtype import FLOAT, OTHER_FLOATS
from worker.graph.index import GraphIndex, Use, build_index
from worker.graph.inference import Inferred, Shape, infer
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.graph.types import Types, propagate
from worker.graph.values import find_dense, find_static
from worker.graph.walk import subgraphs


@dataclass(slots=True)
class Graph:
    """Facts of a loaded model. Read-only after `analyze`.

    scan_bodies: the graphs that Scan nodes carry, by identity.
    static: values computed from constants alone. dense: activations, that is floats which depend on a MatMul, Conv
    or the like with a long dot product; positions, masks and features of a time step are not dense.
    marked: reads (node index, input position) that went through a Cast from a float to FP32 in the upload.
    """

    index: GraphIndex
    types: Types
    inferred: Inferred
    static: frozenset[str]
    dense: frozenset[str]
    marked: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    scan_bodies: frozenset[int] = field(default_factory=frozenset)
    stripped_casts: int = 0

    @property
    def model(self) -> ModelProto:
        return self.index.model

    @property
    def nodes(self) -> list[Node]:
        return self.index.nodes

    def producer(self, name: str) -> Node | None:
        return self.index.producers.get(name)

    def uses(self, name: str) -> list[Use]:
        return self.index.uses.get(name, [])

    def consumers(self, name: str) -> list[Node]:
        return [use.node for use in self.uses(name)]

    def is_float(self, name: str) -> bool:
        return self.types.get(name) == FLOAT

    def shape(self, name: str) -> Shape | None:
        tensor = self.index.weights.get(name)
        return tuple(tensor.dims) if tensor is not None else self.inferred.shapes.get(name)

    def array(self, name: str) -> NDArray[np.generic] | None:
        return self.index.array(name)

    def scalar(self, name: str) -> float | None:
        return self.index.scalar(name)

    def weight(self, name: str) -> TensorProto | None:
        return self.index.weights.get(name)

    def is_public_input(self, name: str) -> bool:
        return name in self.index.inputs

    def is_output(self, name: str) -> bool:
        """An output of the main graph or of a subgraph."""
        return name in self.index.outputs

    def float_inputs(self, node: Node) -> list[str]:
        return [slot.name for slot in node.inputs if self.is_float(slot.name)]

    def float_outputs(self, node: Node) -> list[str]:
        return [slot.name for slot in node.outputs if self.is_float(slot.name)]


def analyze(skeleton: Skeleton, max_shapes: Mapping[str, Shape] | None = None) -> Graph:
    """Strips Casts that do nothing (remembering where they stood), then gathers all facts.

    `max_shapes`: the largest shapes of dynamic inputs; shapes are then upper bounds.
    """
    index = build_index(skeleton)
    inferred = infer(skeleton.model, max_shapes)
    types = propagate(index, inferred)
    marks, stripped = strip_noop_casts(index, types)
    if stripped:
        index = build_index(skeleton)
        types = {name: text for name, text in types.items() if name in index.homes}
    marked = frozenset(
        (node.index, slot.index)
        for node in index.nodes
        for slot in node.inputs
        if (node.output, slot.index) in marks or _is_cast_of_a_float(index.producer(slot.name), types)
    )
    static = find_static(index)
    dense = find_dense(index, types, inferred, static)
    scans = frozenset(id(body) for node in index.nodes if node.is_a("Scan") for body in subgraphs(node.proto))
    return Graph(index, types, inferred, static, dense, marked, scans, stripped)


def _is_cast_of_a_float(node: Node | None, types: Types) -> bool:
    """A Cast to FP32 of another float. That of an integer or a bool is no wish for precision: it makes the float."""
    return (
        node is not None
        and node.is_a("Cast")
        and node.attribute("to") == TensorProto.FLOAT
        and types.get(node.input(0)) in OTHER_FLOATS
    )
