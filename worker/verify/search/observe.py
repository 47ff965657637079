"""One run in FP32 that shows all that the search wants to know: outputs, shapes, ranges, and what half would do to each
island.

The last is seen by *shadows*: each candidate's nodes a second time, in emulated half, fed with the activations that
FP32 has anyway. So all candidates together cost one more run of their own nodes, not one run of the model each.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import NodeProto, TensorProto

from worker.graph.dtype import FLOAT
from worker.graph.graph import Graph
from worker.graph.node import Node, Slot
from worker.graph.walk import subgraphs
from worker.precision.plan import PrecisionPlan
from worker.verify.search.types import Candidate, Drift, Observation
from worker.verify.search.workbench import Workbench
from worker.verify.session import RunFailed, Session
from worker.verify.types import Unverifiable
from worker.verify.watchdog import Watchdog

Feeds = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """The outputs that hold the energies of an island's result in FP32 and of its error in half."""

    signal: str
    error: str


@dataclass(slots=True)
class _Probes:
    """Names of the outputs that were added, by what they tell."""

    shapes: dict[str, str] = field(default_factory=dict)
    peaks: dict[str, str] = field(default_factory=dict)
    drifts: dict[int, list[_Pair]] = field(default_factory=dict)


def observe(
    graph: Graph, bare: PrecisionPlan, every: Iterable[Candidate], feeds: Feeds, folder: Path, watchdog: Watchdog
) -> Observation:
    """`bare` is the plan that keeps no candidate without an obstacle; `folder` holds the files with weights.

    Raises Unverifiable when the model cannot be run so, or not within the budget.
    """
    bench = Workbench.of(graph)
    probes = _Observer(graph, bare, bench, tuple(one for one in every if one.obstacle is None)).place()
    session = Session(bench.finish(), folder, "model with probes")
    try:
        runs = [session.run(feed, watchdog) for feed in feeds]
    except RunFailed as failure:
        raise Unverifiable(f"the model does not run with probes: {failure}") from failure
    return _read(probes, runs)


@dataclass(slots=True)
class _Observer:
    graph: Graph
    bare: PrecisionPlan
    bench: Workbench
    every: tuple[Candidate, ...]
    _halves: dict[str, str] = field(default_factory=dict)
    _probes: _Probes = field(default_factory=_Probes)

    def place(self) -> _Probes:
        owners = {node.index: candidate for candidate in self.every for node in candidate.nodes}
        shadows: dict[int, dict[str, str]] = {candidate.number: {} for candidate in self.every}
        for node in self.bench.index.nodes:
            self._place_original(node)
            if node.graph is not self.bench.index.main:
                continue
            self._probe_shapes(node)
            if node.index in owners:
                self._probe_peaks(node)
                self._place_shadow(node, shadows[owners[node.index].number])
        for candidate in self.every:
            self._probe_drift(candidate, shadows[candidate.number])
        return self._probes

    def _place_original(self, node: Node) -> None:
        for body in subgraphs(node.proto):
            self.bench.close(body)
        self.bench.place(node.graph, node.proto)

    def _probe_shapes(self, node: Node) -> None:
        for name in self.graph.float_outputs(node):
            self._probes.shapes[name] = self._shown("Shape", name, TensorProto.INT64)

    def _probe_peaks(self, node: Node) -> None:
        for name in (*self.graph.float_inputs(node), *self.graph.float_outputs(node)):
            if name not in self._probes.peaks and name not in self.graph.static:
                size = self.bench.add(self._main, "Abs", [name], f"{name}/size")
                self._probes.peaks[name] = self._shown("ReduceMax", size, TensorProto.FLOAT, keepdims=0)

    def _place_shadow(self, node: Node, shadow: dict[str, str]) -> None:
        proto = NodeProto()
        proto.CopyFrom(node.proto)
        proto.name = ""
        for slot in node.inputs:
            proto.input[slot.index] = self._shadow_read(node, slot, shadow)
        for slot in node.outputs:
            if slot.name:
                shadow[slot.name] = proto.output[slot.index] = self.bench.names.fresh(f"{slot.name}/shadow")
        self.bench.place(self._main, proto)
        for slot in node.outputs:
            if slot.name and self._in_half(node, slot):
                shadow[slot.name] = self._rounded(shadow[slot.name])

    def _shadow_read(self, node: Node, slot: Slot, shadow: Mapping[str, str]) -> str:
        if slot.name in shadow or not self._in_half(node, slot):
            return shadow.get(slot.name, slot.name)
        return self._half(slot.name)

    def _in_half(self, node: Node, slot: Slot) -> bool:
        return self.graph.types.get(slot.name) == FLOAT and self.bare.wants_half(node, slot)

    def _half(self, name: str) -> str:
        if name not in self._halves:
            self._halves[name] = self._rounded(name)
        return self._halves[name]

    def _rounded(self, name: str) -> str:
        target = self.bench.names.fresh(f"{name}/rounded")
        self.bench.round(self._main, name, target, self.bare.half)
        return target

    def _probe_drift(self, candidate: Candidate, shadow: Mapping[str, str]) -> None:
        for name in self._results(candidate):
            expected = self._half(name)
            error = self.bench.add(self._main, "Sub", [shadow[name], expected], f"{name}/error")
            pair = _Pair(self._energy(name), self._energy(error))
            self._probes.drifts.setdefault(candidate.number, []).append(pair)

    def _results(self, candidate: Candidate) -> list[str]:
        """Floats that leave the island."""
        inside = set(candidate.nodes)
        return [
            name
            for node in candidate.nodes
            for name in self.graph.float_outputs(node)
            if self.graph.is_output(name) or not inside.issuperset(self.graph.consumers(name))
        ]

    def _energy(self, name: str) -> str:
        """The sum of squares, in double: in FP32 it could overflow."""
        double = self.bench.add(self._main, "Cast", [name], f"{name}/double", to=TensorProto.DOUBLE)
        return self._shown("ReduceSumSquare", double, TensorProto.DOUBLE, keepdims=0)

    def _shown(self, op: str, name: str, dtype: int, **attributes: int) -> str:
        shown = self.bench.add(self._main, op, [name], f"{name}/{op}", **attributes)
        self.bench.show(shown, dtype)
        return shown

    @property
    def _main(self) -> Any:
        return self.bench.index.main


def _read(probes: _Probes, runs: Feeds) -> Observation:
    return Observation(
        shapes={
            name: max((tuple(map(int, run[probe])) for run in runs), key=math.prod)
            for name, probe in probes.shapes.items()
        },
        peaks={name: max(float(run[probe]) for run in runs) for name, probe in probes.peaks.items()},
        drifts={
            number: Drift(max(_relative(run[pair.signal], run[pair.error]) for run in runs for pair in pairs))
            for number, pairs in probes.drifts.items()
        },
    )


def _relative(signal: Any, error: Any) -> float:
    """Where FP32 itself is not finite, half is no worse."""
    if not math.isfinite(signal):
        return 0.0
    if not math.isfinite(error):
        return math.inf
    if error == 0.0:
        return 0.0
    return math.sqrt(error / signal) if signal > 0.0 else math.inf
