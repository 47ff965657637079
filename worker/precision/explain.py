"""Explains nodes of a planned model: dtype, reason, the casts around, and what would change it."""

from collections.abc import Iterator
from pathlib import Path

from worker.graph.dtype import FLOAT
from worker.graph.graph import Graph
from worker.graph.index import Use
from worker.graph.node import Node, Slot
from worker.graph.skeleton import open_skeleton
from worker.precision.explanation import (
    Explanations,
    InputExplanation,
    NodeExplanation,
    Option,
    OutputExplanation,
    ReaderExplanation,
)
from worker.precision.options import find_options
from worker.precision.plan import Cause, PrecisionPlan
from worker.precision.report import Finding
from worker.precision.reporting import Planned, attention_report, island_report
from worker.precision.select import select

_AS_READ = "as read"


def explain(planned: Planned, pattern: str, source: Path) -> Explanations:
    """Every node that `pattern` names; `source` is the file that was planned. Raises CommandError, with names that
    are close, when there is none."""
    graph, plan = planned.graph, planned.plan
    nodes = select(graph, pattern, open_skeleton(source).model)
    options = find_options(graph, plan, planned.options, planned.measured, nodes)
    explainer = _Explainer(graph, plan)
    return Explanations(
        mode=planned.options.mode,
        trunk=planned.options.trunk,
        pattern=pattern,
        nodes=tuple(explainer.node(node, options.get(node.index, ())) for node in nodes),
    )


class _Explainer:
    """Reads one plan."""

    def __init__(self, graph: Graph, plan: PrecisionPlan) -> None:
        self._graph, self._plan = graph, plan
        self._islands = {node.index: island for island in plan.islands for node in island.nodes}
        self._cores = {node.index: core for core in plan.cores for node in core.core.nodes}

    def node(self, node: Node, options: tuple[Option, ...]) -> NodeExplanation:
        decision = self._plan.decisions[node.index]
        island, core = self._islands.get(node.index), self._cores.get(node.index)
        return NodeExplanation(
            node=node.label,
            op=node.op,
            opset=node.opset,
            position=node.index + 1,
            nodes=len(self._graph.nodes),
            dtype="none" if decision.cause is Cause.NO_FLOATS else self._plan.half.name if decision.is_half else "fp32",
            cause=decision.cause.value,
            reason=decision.reason,
            island=island_report(island) if island else None,
            core=attention_report(core, self._plan) if core else None,
            inputs=tuple(self._input(node, slot) for slot in node.inputs if slot.name),
            outputs=tuple(self._output(slot) for slot in node.outputs if slot.name),
            declined=tuple(self._declined(node)),
            options=options,
        )

    def _input(self, node: Node, slot: Slot) -> InputExplanation:
        read, made = self._read(Use(node, slot.index)), self._made(slot.name)
        return InputExplanation(
            position=slot.index,
            name=slot.name,
            source=self._source(slot.name),
            before=self._before(slot.name),
            made=made,
            read=read,
            cast=made not in (read, _AS_READ),
            note=self._note(node, slot),
        )

    def _output(self, slot: Slot) -> OutputExplanation:
        made = self._made(slot.name)
        readers = (self._reader(use, made) for use in self._graph.uses(slot.name))
        return OutputExplanation(
            position=slot.index,
            name=slot.name,
            before=self._before(slot.name),
            made=made,
            public=self._graph.is_output(slot.name),
            readers=tuple(readers),
        )

    def _reader(self, use: Use, made: str) -> ReaderExplanation:
        read = self._read(use)
        return ReaderExplanation(node=use.node.label, op=use.node.op, read=read, cast=made not in (read, _AS_READ))

    def _source(self, name: str) -> str:
        if self._graph.weight(name) is not None:
            return "weight"
        maker = self._graph.producer(name)
        return "input" if maker is None else f"{maker.op} {maker.label}"

    def _before(self, name: str) -> str:
        text = self._graph.types.get(name)
        if text is None:
            return "unknown"
        return "fp32" if text == FLOAT else text.removeprefix("tensor(").removesuffix(")")

    def _made(self, name: str) -> str:
        if self._graph.weight(name) is not None:
            return _AS_READ
        return self._plan.half.name if name in self._plan.half_tensors else self._before(name)

    def _read(self, use: Use) -> str:
        """The dtype in which the node reads a value at a position."""
        slot = use.node.inputs[use.position]
        if self._graph.types.get(slot.name) != FLOAT:
            return self._before(slot.name)
        return self._plan.half.name if self._plan.wants_half(use.node, slot) else "fp32"

    def _note(self, node: Node, slot: Slot) -> str | None:
        wants_half = self._plan.wants_half(node, slot)
        if slot.name in self._plan.saturate and (wants_half or node.index in self._plan.mask_nodes):
            return f"clamped to +-{self._plan.saturate[slot.name]:g}"
        if slot.name in self._plan.guard and wants_half:
            return "clamped where it is cast: its range is not known"
        return "read through a Cast to FP32 in the upload" if (node.index, slot.index) in self._graph.marked else None

    def _declined(self, node: Node) -> Iterator[Finding]:
        beside = {node.label, *self._neighbours(node)}
        if node.index in self._cores:
            beside |= {fellow.label for fellow in self._cores[node.index].core.nodes}
        for answer in self._plan.declined:
            if answer.where in beside:
                yield Finding(kind=answer.family, where=answer.where, detail=answer.reason)

    def _neighbours(self, node: Node) -> Iterator[str]:
        for slot in node.inputs:
            maker = self._graph.producer(slot.name)
            if maker is not None:
                yield maker.label
        for slot in node.outputs:
            yield from (reader.label for reader in self._graph.consumers(slot.name))
