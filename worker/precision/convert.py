"""Conversion from file to file: load, analyse, plan, rewrite, check, write."""

import shutil
import time
from dataclasses import replace

from service.errors import CommandError
from worker.graph.graph import Graph, analyze
from worker.graph.load import load
from worker.graph.opset import raise_opset
from worker.graph.save import save
from worker.precision.check import check, interface
from worker.precision.opset import wanted_opset
from worker.precision.planner import Options, make_plan
from worker.precision.report import ConversionReport, Finding
from worker.precision.reporting import Before, describe
from worker.precision.rewrite import rewrite
from worker.types import ConvertRequest


def convert(request: ConvertRequest) -> ConversionReport:
    """Writes `request.target` and tells what became of the model.

    A model of which nothing can be, or is wanted, in half is copied byte for byte. Raises a kind of InvalidModel for
    a bad file, ConversionFailed when the result does not pass its self-check, InsufficientStorage when it cannot be
    written.
    """
    started = time.monotonic()
    if request.target.resolve() == request.source.resolve():
        raise CommandError(f"{request.target} is the upload itself; write the converted model elsewhere")
    options = _options(request)
    graph = analyze(load(request.source), request.max_shapes)
    before = Before.of(graph)
    graph, findings = _at_a_fitting_opset(graph, request, options)
    plan = make_plan(graph, options)
    if plan.all_fp32:
        _copy(graph, request)
        return describe(request, before, plan, None, graph.types, time.monotonic() - started)
    plan = replace(plan, findings=(*findings, *plan.findings))
    public = interface(graph.model)
    rewritten = rewrite(graph, plan)
    types = check(rewritten.output.skeleton, public)
    save(rewritten.output, request.target)
    return describe(request, before, plan, rewritten, types, time.monotonic() - started)


def _options(request: ConvertRequest) -> Options:
    return Options(
        mode=request.mode,
        trunk=request.trunk,
        bounded_attention=request.bounded_attention,
        keep_fp32=request.keep_fp32,
        keep_trunk=request.keep_trunk,
    )


def _at_a_fitting_opset(graph: Graph, request: ConvertRequest, options: Options) -> tuple[Graph, list[Finding]]:
    """The graph at the opset that the trunk dtype needs, and what is to be told about it."""
    target = wanted_opset(graph, options.half)
    if target is None:
        return graph, []
    fresh = load(request.source)  # the analysis has taken the markers out of the first one
    refusal = raise_opset(fresh, target)
    if refusal is None:
        return analyze(fresh, request.max_shapes), [Finding(kind="opset raised", where="model", detail=f"to {target}")]
    detail = f"{options.half.name} needs opset {target} for some nodes, which stay FP32: {refusal}"
    return graph, [Finding(kind="opset kept", where="model", detail=detail)]


def _copy(graph: Graph, request: ConvertRequest) -> None:
    """The upload as it is, with its external-data files beside it."""
    files = {payload.path for payload in graph.index.skeleton.payloads.values()} - {request.source}
    for path in sorted(files):
        copied = request.target.parent / path.relative_to(request.source.parent)
        copied.parent.mkdir(parents=True, exist_ok=True)
        if copied.resolve() != path.resolve():
            shutil.copyfile(path, copied)
    shutil.copyfile(request.source, request.target)
