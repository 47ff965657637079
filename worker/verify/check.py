"""The verdict on a conversion: FP32 against the converted graph under half emulation, on generated inputs."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker.graph.index import GraphIndex, build_index
from worker.graph.load import load
from worker.graph.skeleton import Skeleton
from worker.verify.compare import compare, worst
from worker.verify.emulate import emulate
from worker.verify.inputs import generate, input_specs, shape_sets
from worker.verify.session import RunFailed, Session
from worker.verify.types import Incomparable, OutputFigures, Unverifiable, Verdict, VerdictName, VerifyRequest
from worker.verify.watchdog import Watchdog
from worker.verify.weights import weight_bytes

Progress = Callable[[str, int, int], None]
Results = list[dict[str, Any]]

_RESOLUTION = 2.0**-11
_DRAWS = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")


def verify(request: VerifyRequest, progress: Progress | None = None) -> Verdict:
    """Run both graphs and compare every output. `progress` hears (phase, step, of).

    Raises a kind of InvalidModel when a file cannot be read; what cannot be judged is `not verified`, with the reason.
    """
    start = time.monotonic()
    try:
        figures = _measure(request, progress or _quiet)
    except Unverifiable as unknown:
        return Verdict("not verified", str(unknown), seconds=time.monotonic() - start)
    except Incomparable as fault:
        return Verdict("failed", str(fault), seconds=time.monotonic() - start)
    silent = silent_outputs(request.source, figures)
    judged = [figure for figure in figures if figure.name not in silent or figure.nonfinite]
    reason = next((text for figure in judged if (text := shortfall(figure, request.target_cosine))), None)
    verdict: VerdictName = "passed" if reason is None else "failed"
    if reason is None and silent:
        verdict, reason = "not verified", f"probabilities of {', '.join(silent)} are all but zero on generated inputs"
    return Verdict(
        verdict=verdict,
        reason=reason,
        cosine=min((figure.cosine for figure in judged), default=None),
        outputs=figures,
        seconds=time.monotonic() - start,
    )


def silent_outputs(source: Path, figures: tuple[OutputFigures, ...]) -> list[str]:
    """Sigmoids that say "no" everywhere: what is below half's resolution at 1 is noise in either dtype."""
    makers = build_index(load(source)).producers
    return [
        figure.name
        for figure in figures
        if figure.largest < _RESOLUTION and figure.name in makers and makers[figure.name].is_a("Sigmoid", "HardSigmoid")
    ]


def _quiet(_phase: str, _step: int, _of: int) -> None:
    """For callers that do not listen."""


def _measure(request: VerifyRequest, progress: Progress) -> tuple[OutputFigures, ...]:
    source, converted = load(request.source), load(request.converted)
    index = build_index(source)
    _refuse_heavy(source, request.weight_bytes)
    _refuse_random(index)
    specs = input_specs(index)
    feeds = [generate(specs, shapes, request.seed) for shapes in shape_sets(index.model, request.profiles)]
    watchdog = Watchdog(request.seconds, request.memory_bytes)
    session = Session(source, request.source.parent, "model")
    feeds, expected = _run_reference(session, feeds, watchdog, progress)
    del session  # its weights are not needed beside those of the next
    emulate(converted)
    session = Session(converted, request.converted.parent, "converted graph in half emulation")
    return _compare_all(session, feeds, expected, watchdog, progress)


def _run_reference(
    session: Session, feeds: list[dict[str, Any]], watchdog: Watchdog, progress: Progress
) -> tuple[list[dict[str, Any]], Results]:
    """The feeds that the model takes in FP32, and what it answers. Raises Unverifiable when it takes none."""
    taken: list[dict[str, Any]] = []
    results: Results = []
    refusal = ""
    for step, feed in enumerate(feeds):
        progress("running FP32", step, len(feeds))
        try:
            results.append(session.run(feed, watchdog))
        except RunFailed as failure:
            refusal = str(failure)
            continue
        taken.append(feed)
    if not taken:
        raise Unverifiable(f"the model does not run on generated inputs: {refusal}")
    return taken, results


def _compare_all(
    session: Session, feeds: list[dict[str, Any]], expected: Results, watchdog: Watchdog, progress: Progress
) -> tuple[OutputFigures, ...]:
    figures = []
    for step, (feed, reference) in enumerate(zip(feeds, expected, strict=True)):
        progress("running half emulation", step, len(feeds))
        try:
            actual = session.run(feed, watchdog)
        except RunFailed as failure:
            raise Incomparable(f"the converted graph does not run where FP32 does: {failure}") from failure
        figures += [compare(name, reference[name], actual[name]) for name in reference]
    return worst(figures)


def shortfall(figure: OutputFigures, target: float) -> str | None:
    """Why an output does not pass. Cosine alone is blind to scale, so the error's size has a bound of its own:
    twice what an error at right angles has at the target."""
    if figure.nonfinite:
        return f"output {figure.name!r} has {figure.nonfinite} elements that are finite in only one of FP32 and half"
    if figure.cosine < target:
        return f"output {figure.name!r} has cosine {figure.cosine:.6f}; {target:g} is asked for"
    limit = 2 * math.sqrt(2 * (1 - target))
    if figure.relative_l2 is None:
        return f"output {figure.name!r} is zero in FP32 and up to {figure.max_error:g} in half"
    if figure.relative_l2 > limit:
        return f"output {figure.name!r} has relative error {figure.relative_l2:.4f}; {limit:.4f} is allowed"
    return None


def _refuse_heavy(source: Skeleton, limit: int) -> None:
    used = weight_bytes(source)
    if used > limit:
        raise Unverifiable(f"the model has {used >> 20} MiB of weights; up to {limit >> 20} MiB are verified")


def _refuse_random(index: GraphIndex) -> None:
    for node in index.nodes:
        trains = node.is_a("Dropout") and node.input(2) and index.scalar(node.input(2)) != 0.0
        if trains or node.is_a(*_DRAWS):
            raise Unverifiable(f"the graph draws random numbers: node {node.label!r} ({node.op})")
