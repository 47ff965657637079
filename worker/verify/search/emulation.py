"""The uploaded graph as it will compute under a plan: in FP32, with each half value rounded.

It gives what `worker.verify.emulate` makes of the converted graph, bit by bit, without one: a trial writes no weights.
"""

from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto

from worker.graph.dtype import FLOAT, OTHER_FLOATS
from worker.graph.graph import Graph
from worker.graph.node import Node, Slot
from worker.graph.skeleton import Skeleton
from worker.graph.walk import subgraphs
from worker.precision.ops import EXACT
from worker.precision.plan import PrecisionPlan
from worker.verify.emulate import emulate
from worker.verify.search.workbench import Workbench


def emulate_plan(graph: Graph, plan: PrecisionPlan) -> Skeleton:
    """A model of its own; `graph` stays as it is. Raises Unverifiable for what cannot be emulated."""
    bench = Workbench.of(graph)
    emulation = Emulation(graph, plan, bench)
    for node in bench.index.nodes:
        emulation.run(node)
    skeleton = bench.finish()
    if any(text in OTHER_FLOATS for text in graph.types.values()):
        emulate(skeleton)  # the upload itself is half in part
    return skeleton


@dataclass(slots=True)
class Emulation:
    """Places the nodes of the bench one by one, with the roundings around them."""

    graph: Graph
    plan: PrecisionPlan
    bench: Workbench
    _halves: dict[tuple[int, str], str] = field(default_factory=dict)

    def run(self, node: Node) -> None:
        """One node, as the plan has it."""
        for body in subgraphs(node.proto):
            self.bench.close(body)
        proto = NodeProto()
        proto.CopyFrom(node.proto)
        for slot in node.inputs:
            proto.input[slot.index] = self._read(node, slot)
        exact = {} if self._is_exact(node) else self._exact_outputs(node)
        proto.output[:] = [exact.get(name, name) for name in proto.output]
        self.bench.place(node.graph, proto)
        for name, source in exact.items():
            self._finish(node, source, name)

    def half(self, scope: GraphProto, name: str) -> str:
        """What a reader in half gets of a value in FP32; made once a scope."""
        key = id(scope), name
        if key not in self._halves:
            source = self._limited(scope, name)
            self._halves[key] = self.bench.names.fresh(f"{name}/rounded")
            self.bench.round(scope, source, self._halves[key], self.plan.half)
        return self._halves[key]

    def _read(self, node: Node, slot: Slot) -> str:
        name = slot.name
        if self.graph.types.get(name) != FLOAT:
            return name
        if self.plan.wants_half(node, slot):
            return name if name in self.plan.half_tensors else self.half(node.graph, name)
        is_mask = node.index in self.plan.mask_nodes and self.graph.weight(name) is not None
        return self._limited(node.graph, name) if is_mask and name in self.plan.saturate else name

    def _limited(self, scope: GraphProto, name: str) -> str:
        limit = self.plan.saturate.get(name)
        if limit is not None and self.graph.weight(name) is not None:
            return self.bench.clamp(scope, name, -limit, limit)
        return self.bench.clamp(scope, name, self.plan.half.mask_floor) if name in self.plan.guard else name

    def _is_exact(self, node: Node) -> bool:
        """It hands on values that have been rounded already."""
        floats = [slot for slot in node.inputs if self.graph.types.get(slot.name) == FLOAT]
        return node.op in EXACT and all(self.plan.wants_half(node, slot) for slot in floats)

    def _exact_outputs(self, node: Node) -> dict[str, str]:
        names = [name for name in node.proto.output if name in self.plan.half_tensors or self._is_filled(node)]
        return {name: self.bench.names.fresh(f"{name}/exact") for name in names}

    def _is_filled(self, node: Node) -> bool:
        return node.is_a("ConstantOfShape") and node.output in self.plan.saturate

    def _finish(self, node: Node, source: str, name: str) -> None:
        scope = node.graph
        if self._is_filled(node):
            limit = self.plan.saturate[name]
            source = self.bench.clamp(scope, source, -limit, limit)
        if name in self.plan.half_tensors:
            self.bench.round(scope, source, name, self.plan.half)
        else:
            self.bench.place(scope, NodeProto(op_type="Identity", input=[source], output=[name]))
