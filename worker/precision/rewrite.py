"""Applies a plan to the model, mechanically: weights, casts, and nothing that the plan does not say."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from worker.graph.dims import name_placeholders
from worker.graph.dtype import FLOAT
from worker.graph.graph import Graph
from worker.graph.names import NameSource, all_names
from worker.graph.node import Node, Slot
from worker.graph.save import Output
from worker.graph.walk import graphs, opsets
from worker.precision.convert_weights import Form, Weights
from worker.precision.plan import PrecisionPlan

_OPSET_FOR_CASTS, _IR_FOR_CASTS = 13, 7


@dataclass(frozen=True, slots=True)
class Rewritten:
    output: Output
    casts_added: int
    casts_removed: int


def rewrite(graph: Graph, plan: PrecisionPlan) -> Rewritten:
    """Mutates the model that `graph` is an index of; `graph` must not be used afterwards."""
    return _Rewriter(graph, plan).run()


@dataclass(slots=True)
class _Rewriter:
    graph: Graph
    plan: PrecisionPlan
    names: NameSource = field(init=False)
    weights: Weights = field(init=False)
    halves: dict[str, str] = field(default_factory=dict)  # FP32 value of the upload -> its name in half
    floats: dict[str, str] = field(default_factory=dict)  # value made in half -> its name in FP32
    after: dict[str, list[NodeProto]] = field(default_factory=dict)  # value -> nodes to place once it exists
    added: int = 0
    gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names = NameSource(all_names(self.graph.index.main))
        self.weights = Weights(self.graph, self.plan, self.names)

    def run(self) -> Rewritten:
        for node in self.graph.nodes:
            self._retype(node)
            self._name_outputs(node)
        self._ask_for_weights()
        for node in self.graph.nodes:
            for slot in self._float_slots(node):
                node.proto.input[slot.index] = self._source(node, slot)
        removed = self._drop_noop_casts()
        name_placeholders(self.graph.model)
        self.weights.finish()  # before nodes are placed: that copies them, Constants included
        for scope in reversed(list(graphs(self.graph.index.main))):  # inner first: placing copies nodes
            self._place(scope)
        _import_default_domain(self.graph.model)
        return Rewritten(self.weights.output, self.added, removed + self.graph.stripped_casts)

    def _retype(self, node: Node) -> None:
        """Attributes that name the dtype of an output follow the plan."""
        half = bool(node.proto.output) and node.output in self.plan.half_tensors
        if node.is_a("Cast") and half:
            _set(node.proto, "to", self.plan.half.onnx)
        elif node.is_a("ConstantOfShape") and (half or node.output in self.plan.saturate):
            _set(node.proto, "value", self.weights.fill(node.output, node.attribute("value"), half))

    def _name_outputs(self, node: Node) -> None:
        """A value that is an output keeps its name for FP32; what the node makes in half gets another."""
        for slot in node.outputs:
            if slot.name not in self.plan.half_tensors:
                continue
            inner = slot.name
            if self.graph.is_output(slot.name):
                inner = self.names.fresh(f"{slot.name}_{self.plan.half.name}")
                node.proto.output[slot.index] = inner
                self.floats[slot.name] = slot.name
                self._cast(inner, slot.name, TensorProto.FLOAT)
            self.halves[slot.name] = inner

    def _float_slots(self, node: Node) -> list[Slot]:
        return [slot for slot in node.inputs if self.graph.types.get(slot.name) == FLOAT]

    def _ask_for_weights(self) -> None:
        for node in self.graph.nodes:
            for slot in self._float_slots(node):
                if self.graph.weight(slot.name) is not None:
                    self.weights.ask(slot.name, self._form(node, slot))
        for name in self.graph.index.outputs:
            if self.graph.weight(name) is not None and self.graph.is_float(name):
                self.weights.ask(name, Form.FLOAT)

    def _form(self, node: Node, slot: Slot) -> Form:
        if self.plan.wants_half(node, slot):
            return Form.HALF
        clamped = node.index in self.plan.mask_nodes and slot.name in self.plan.saturate
        return Form.CLAMPED if clamped else Form.FLOAT

    def _source(self, node: Node, slot: Slot) -> str:
        """The name under which the node reads the value in the dtype that it wants."""
        if self.graph.weight(slot.name) is not None:
            return self.weights.name(slot.name, self._form(node, slot))
        return self._half(slot.name) if self.plan.wants_half(node, slot) else self._float(slot.name)

    def _half(self, name: str) -> str:
        if name not in self.halves:
            source = self._guarded(name) if name in self.plan.guard else name
            self.halves[name] = self.names.fresh(f"{name}_{self.plan.half.name}")
            self._cast(source, self.halves[name], self.plan.half.onnx, after=name)
        return self.halves[name]

    def _float(self, name: str) -> str:
        if name not in self.plan.half_tensors:
            return name
        if name not in self.floats:
            self.floats[name] = self.names.fresh(f"{name}_fp32")
            self._cast(self.halves[name], self.floats[name], TensorProto.FLOAT)
        return self.floats[name]

    def _guarded(self, name: str) -> str:
        """Clamps finite values from below, and leaves an infinite mask infinite."""
        floor = self.weights.scalar(self.plan.half.mask_floor)
        infinite, clamped, result = (self.names.fresh(f"{name}_{end}") for end in ("is_inf", "clamped", "guarded"))
        self.after.setdefault(name, []).extend(
            (
                helper.make_node("IsInf", [name], [infinite], name=infinite),
                helper.make_node("Max", [name, floor], [clamped], name=clamped),
                helper.make_node("Where", [infinite, name, clamped], [result], name=result),
            )
        )
        return result

    def _cast(self, source: str, target: str, dtype: int, after: str | None = None) -> None:
        node = helper.make_node("Cast", [source], [target], name=self.names.fresh(f"{target}_cast"), to=dtype)
        self.after.setdefault(after or source, []).append(node)
        self.added += 1

    def _drop_noop_casts(self) -> int:
        """Casts of the upload that the plan has made into no-ops."""
        alias: dict[str, str] = {}
        halves = set(self.halves.values())
        for node in self.graph.nodes:
            if not node.is_a("Cast") or node.output in self.graph.index.outputs:
                continue
            source = node.input(0)
            if node.attribute("to") == self.plan.half.onnx and (source in halves or self._was_half(source)):
                alias[node.proto.output[0]] = alias.get(source, source)
        for node in self.graph.nodes:
            for position, name in enumerate(node.proto.input):
                if name in alias:
                    node.proto.input[position] = alias[name]
        for cast in (cast for casts in self.after.values() for cast in casts):
            cast.input[:] = [alias.get(name, name) for name in cast.input]
        for name, source in alias.items():
            self.after.setdefault(source, []).extend(self.after.pop(name, ()))
        self.gone = set(alias)
        return len(alias)

    def _was_half(self, name: str) -> bool:
        return self.graph.types.get(name) == self.plan.half.type_string

    def _place(self, scope: GraphProto) -> None:
        """Casts come right after what they read, so that the order stays topological."""
        nodes: list[NodeProto] = []
        for name in self._starts(scope):
            nodes.extend(self._then(name))
        for proto in list(scope.node):
            if len(proto.output) == 1 and proto.output[0] in self.gone:
                continue
            nodes.append(proto)
            for name in proto.output:
                nodes.extend(self._then(name))
        kept = [value for value in scope.value_info if self._is_opaque(value.name)]
        del scope.node[:], scope.value_info[:]
        scope.node.extend(nodes)
        scope.value_info.extend(kept)

    def _starts(self, scope: GraphProto) -> Iterator[str]:
        yield from (value.name for value in scope.input)
        yield from (tensor.name for tensor in scope.initializer)

    def _then(self, name: str) -> Iterator[NodeProto]:
        for node in self.after.pop(name, ()):
            yield node
            for output in node.output:
                yield from self._then(output)

    def _is_opaque(self, name: str) -> bool:
        """Only what an unknown operator makes needs its declaration; the rest is inferred anew."""
        node = self.graph.producer(name)
        return node is not None and node.schema is None


def _import_default_domain(model: ModelProto) -> None:
    """A model of custom operators alone imports no ONNX opset; casts need one."""
    if "" not in opsets(model):
        model.opset_import.add(domain="", version=_OPSET_FOR_CASTS)
        model.ir_version = max(model.ir_version, _IR_FOR_CASTS)


def _set(proto: NodeProto, name: str, value: int | TensorProto) -> None:
    for attribute in proto.attribute:
        if attribute.name == name:
            attribute.CopyFrom(helper.make_attribute(name, value))
            return
    proto.attribute.append(helper.make_attribute(name, value))
