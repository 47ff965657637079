"""Conversion from file to file: load, analyse, plan, rewrite, check, write."""

import shutil
import time

from service.errors import CommandError
from worker.graph.graph import Graph, analyze
from worker.graph.load import load
from worker.graph.save import save
from worker.precision.check import check, interface
from worker.precision.planner import Options, make_plan
from worker.precision.report import ConversionReport
from worker.precision.reporting import Before, describe
from worker.precision.rewrite import rewrite
from worker.types import ConvertRequest


def convert(request: ConvertRequest) -> ConversionReport:
    """Writes `request.target` and tells what became of the model.

    A model of which nothing can be, or is wanted, in half is copied byte for byte. Raises a kind of InvalidModel for a
    bad file, ConversionFailed when the result does not pass its self-check, InsufficientStorage when it cannot be written.
    """
    started = time.monotonic()
    if request.target.resolve() == request.source.resolve():
        raise CommandError(f"{request.target} is the upload itself; write the converted model elsewhere")
    graph = analyze(load(request.source))
    plan = make_plan(graph, _options(request))
    before = Before.of(graph)
    if plan.all_fp32:
        _copy(graph, request)
        return describe(request, before, plan, None, graph.types, time.monotonic() - started)
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


def _copy(graph: Graph, request: ConvertRequest) -> None:
    """The upload as it is, with its external-data files beside it."""
    files = {payload.path for payload in graph.index.skeleton.payloads.values()} - {request.source}
    for path in sorted(files):
        copied = request.target.parent / path.relative_to(request.source.parent)
        copied.parent.mkdir(parents=True, exist_ok=True)
        if copied.resolve() != path.resolve():
            shutil.copyfile(path, copied)
    shutil.copyfile(request.source, request.target)
