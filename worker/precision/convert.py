"""Conversion from file to file: load, analyse, plan, rewrite, check, write."""

import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from service.errors import CommandError
from worker.graph.chunks import Source
from worker.graph.dtype import HALF_TYPES
from worker.graph.einsum import write_out_einsums
from worker.graph.graph import Graph, analyze
from worker.graph.load import load
from worker.graph.opset import raise_opset
from worker.graph.payload import Payload
from worker.graph.save import Draft, Watch
from worker.graph.stream import Piece
from worker.graph.types import Types
from worker.precision.check import check, interface
from worker.precision.kept_weights import kept_weights
from worker.precision.magnitude import suspects
from worker.precision.opset import einsums_without_half_form, wanted_opset
from worker.precision.planner import Options, make_plan
from worker.precision.provenance import is_converted_alike, stamp
from worker.precision.report import ConversionReport, Finding
from worker.precision.reporting import Before, Planned, describe
from worker.precision.rewrite import Rewritten, rewrite
from worker.precision.weight_facts import WeightFacts
from worker.types import ConvertRequest

_OPSET_KEPT = "opset kept"
_SUSPICIOUS = 0.125
"""Values that may reach this share of the half range are worth measuring."""

Measure = Callable[[Path, Collection[str]], Mapping[str, float]]
"""Runs the model at a path in FP32 and gives the largest magnitude of each value named. Raises NotMeasured."""


class NotMeasured(Exception):  # noqa: N818 -- no error of the user's: it becomes a finding
    """Why nobody could run the model; the message is the finding's detail."""


def convert(request: ConvertRequest, measure: Measure | None = None, watch: Watch | None = None) -> ConversionReport:
    """Writes `request.target` and tells what became of the model.

    `measure` is asked about activations that may be too large for FP16; without it they are only named in the report.
    `watch` follows the writing.

    A model of which nothing can be, or is wanted, in half is copied byte for byte. Raises a kind of InvalidModel for
    a bad file, ConversionFailed when the result does not pass its self-check, InsufficientStorage when it cannot be
    written.
    """
    started = time.monotonic()
    if request.target.resolve() == request.source.resolve():
        raise CommandError(f"{request.target} is the upload itself; write the converted model elsewhere")
    facts = WeightFacts(HALF_TYPES[request.trunk], deferred=True)
    while True:
        with _no_collection():
            planned = plan_model(request, measure, facts)
            rewritten, types = _applied(planned)
        if _written(planned, rewritten, request, facts, watch or Watch()):
            return describe(request, planned, rewritten, types, time.monotonic() - started)


def preview(request: ConvertRequest, measure: Measure | None = None) -> ConversionReport:
    """What `convert` would tell; nothing is written, and `request.target` means nothing. Raises what it would raise."""
    started = time.monotonic()
    planned = plan_model(request, measure)
    rewritten, types = _applied(planned)
    return describe(request, planned, rewritten, types, time.monotonic() - started)


def plan_model(request: ConvertRequest, measure: Measure | None = None, facts: WeightFacts | None = None) -> Planned:
    """The model at the opset that its trunk dtype needs, and the plan for it. Raises a kind of InvalidModel."""
    options = _options(request)
    graph = analyze(load(request.source), request.max_shapes)
    before = Before.of(graph)
    if is_converted_alike(graph.model, options):
        options = replace(options, mode="none")
    graph, findings = _in_a_fitting_form(graph, request, options)
    measured, unmeasured = _measured(graph, request, options, measure)
    plan = make_plan(graph, options, measured, facts)
    # An upload that is copied has been given no other form; but what kept it from half is to be told.
    told = [one for one in findings if one.kind == _OPSET_KEPT] if plan.all_fp32 else [*findings, *unmeasured]
    plan = replace(plan, findings=(*told, *plan.findings))
    return Planned(graph, options, measured, plan, before, kept_weights(graph, plan))


@contextmanager
def _no_collection() -> Iterator[None]:
    """What a graph is analysed into lives to the end; to look through it for garbage again and again costs a third."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _applied(planned: Planned) -> tuple[Rewritten | None, Types]:
    """The plan carried out and checked, in memory; nothing is rewritten where all stays FP32."""
    graph, plan = planned.graph, planned.plan
    if plan.all_fp32:
        return None, graph.types
    public = interface(graph.model)
    rewritten = rewrite(graph, plan)
    stamp(rewritten.output.skeleton.model, planned.options)
    return rewritten, check(rewritten.output.skeleton, public)


def _written(
    planned: Planned, rewritten: Rewritten | None, request: ConvertRequest, facts: WeightFacts, watch: Watch
) -> bool:
    """False when the weights turned out to be such that the plan must be another; `facts` then knows."""
    with Draft(request.target, watch) as draft:
        if rewritten is None:
            _copy(planned.graph, request, draft)
        elif facts.learn(draft.write(rewritten.output)):
            return False
        draft.commit()
    return True


def _options(request: ConvertRequest) -> Options:
    if request.mode == "auto":
        raise ValueError("mode auto is a search, whose result is another mode: see worker.conversion")
    return Options(
        mode=request.mode,
        trunk=request.trunk,
        bounded_attention=request.bounded_attention,
        keep_fp32=request.keep_fp32,
        keep_trunk=request.keep_trunk,
    )


def _in_a_fitting_form(graph: Graph, request: ConvertRequest, options: Options) -> tuple[Graph, list[Finding]]:
    """The graph with the operators and at the opset that the trunk dtype needs, and what is to be told about it."""
    einsums = einsums_without_half_form(graph, options.half)
    findings: list[Finding] = []
    if einsums:
        fresh = load(request.source)  # the analysis has taken the markers out of the first one
        findings = [_written_out(name, options) for name in write_out_einsums(fresh.model, einsums)]
        graph = analyze(fresh, request.max_shapes)
    target = wanted_opset(graph, options.half)
    if target is None:
        return graph, findings
    fresh = load(request.source)
    write_out_einsums(fresh.model, einsums)
    refusal = raise_opset(fresh, target)
    if refusal is None:
        findings.append(Finding(kind="opset raised", where="model", detail=f"to {target}"))
        return analyze(fresh, request.max_shapes), findings
    detail = f"{options.half.name} needs opset {target} for some nodes, which stay FP32: {refusal}"
    return graph, [*findings, Finding(kind=_OPSET_KEPT, where="model", detail=detail)]


def _written_out(einsum: str, options: Options) -> Finding:
    detail = f"an Einsum, which has no {options.half.name} form, is written out as MatMul or Transpose"
    return Finding(kind="einsum written out", where=einsum, detail=detail)


def _measured(
    graph: Graph, request: ConvertRequest, options: Options, measure: Measure | None
) -> tuple[Mapping[str, float], list[Finding]]:
    """Largest magnitudes of the values that are suspected of overflow, and what is to be told if nobody measured."""
    names = suspects(graph, options.half.max * _SUSPICIOUS) if options.mode != "none" else frozenset()
    if not names:
        return {}, []
    reason = "nobody ran the model"
    if measure is not None:
        try:
            return measure(request.source, names), []
        except NotMeasured as why:
            reason = str(why)
    detail = f"by their weights {len(names)} activations from {min(names)!r} on may be large; not measured: {reason}"
    return {}, [Finding(kind="range not measured", where="model", detail=detail)]


def _copy(graph: Graph, request: ConvertRequest, draft: Draft) -> None:
    """The upload as it is, with its external-data files beside it."""
    files = {payload.path for payload in graph.index.skeleton.payloads.values()} - {request.source}
    for path in sorted(files):
        copied = request.target.parent / path.relative_to(request.source.parent)
        if copied.resolve() != path.resolve():
            copied.parent.mkdir(parents=True, exist_ok=True)
            draft.write_file(copied, _whole(path))
    draft.write_file(request.target, _whole(request.source))


def _whole(path: Path) -> list[Piece]:
    return [Source(Payload(path, 0, path.stat().st_size), None)]
