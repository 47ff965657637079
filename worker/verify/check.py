"""The verdict on a conversion: FP32 against the converted graph under half emulation, output by output."""

import math
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from worker.graph.index import build_index
from worker.graph.load import load
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.verify.accumulate import accumulate_in_half
from worker.verify.compare import worst
from worker.verify.emulate import emulate
from worker.verify.headroom import float_values, ranges_of
from worker.verify.locate import Located, Prepare
from worker.verify.ranges import measure
from worker.verify.trial import Progress, Trial
from worker.verify.types import (
    Incomparable,
    OutputFigures,
    Ranges,
    Unverifiable,
    Verdict,
    VerdictFinding,
    VerdictName,
    VerifyRequest,
)

_RESOLUTION = 2.0**-11
_SHARE_OF_ONE_NODE = 0.25
"""A node that brings in this part of the error that is allowed is worth naming."""


def verify(request: VerifyRequest, progress: Progress | None = None) -> Verdict:
    """Run both graphs and compare every output. `progress` hears (phase, step, of).

    Raises InvalidSample, and a kind of InvalidModel when a file cannot be read; what cannot be judged is `not
    verified`, with the reason.
    """
    start = time.monotonic()
    try:
        verdict = _judge(Trial.of(request, progress or _quiet))
    except Unverifiable as unknown:
        verdict = Verdict("not verified", str(unknown))
    except Incomparable as why:
        verdict = Verdict("failed", str(why))
    return replace(verdict, inputs="samples" if request.samples else "generated", seconds=time.monotonic() - start)


def silent_outputs(source: Path, figures: tuple[OutputFigures, ...]) -> list[str]:
    """Sigmoids that say "no" everywhere: what is below half's resolution at 1 is noise in either dtype."""
    quiet = [figure.name for figure in figures if figure.largest < _RESOLUTION]
    if not quiet:
        return []
    makers = build_index(load(source)).producers
    return [name for name in quiet if name in makers and makers[name].is_a("Sigmoid", "HardSigmoid")]


def fault(figure: OutputFigures, target: float) -> str | None:
    """Why an output does not pass. Cosine alone is blind to scale, so the error's size has a bound of its own."""
    if figure.nonfinite:
        return f"output {figure.name!r} has {figure.nonfinite} elements that are finite in only one of FP32 and half"
    if figure.cosine < target:
        return f"output {figure.name!r} has cosine {figure.cosine:.6f}; {target:g} is asked for"
    limit = allowed_error(target)
    if figure.relative_l2 is None:
        return f"output {figure.name!r} is zero in FP32 and up to {figure.max_error:g} in half"
    if figure.relative_l2 > limit:
        return f"output {figure.name!r} has relative error {figure.relative_l2:.4f}; {limit:.4f} is allowed"
    return None


def allowed_error(target: float) -> float:
    """Relative L2: twice what an error at right angles has at the target cosine."""
    return 2 * math.sqrt(2 * (1 - target))


def _quiet(_phase: str, _step: int, _of: int) -> None:
    """For callers that do not listen."""


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What one way to run the converted graph comes to."""

    verdict: VerdictName
    reason: str | None
    figures: tuple[OutputFigures, ...]
    cosine: float | None
    located: Located | None = None
    findings: tuple[VerdictFinding, ...] = ()


def _judge(trial: Trial) -> Verdict:
    opinion = _opinion(trial, emulate, "half emulation")
    pessimistic, told = _pessimistic(trial, opinion) if trial.request.pessimistic else (None, ())
    ranges, unmeasured = _ranges(trial) if trial.request.ranges else (None, ())
    return Verdict(
        verdict=opinion.verdict,
        reason=opinion.reason,
        cosine=opinion.cosine,
        outputs=opinion.figures,
        pessimistic=pessimistic,
        culprit=opinion.located.culprit if opinion.located else None,
        worst=opinion.located.worst if opinion.located else None,
        findings=(*opinion.findings, *told, *unmeasured),
        ranges=ranges,
    )


def _opinion(trial: Trial, prepare: Prepare, what: str) -> _Opinion:
    """Raises Unverifiable, and Incomparable."""
    request = trial.request
    runs = trial.compare(prepare, what)
    figures = worst(figure for run in runs for figure in run)
    silent = silent_outputs(request.source, figures)
    judged = [figure for figure in figures if figure.name not in silent or figure.nonfinite]
    faults = {figure.name: text for figure in judged if (text := fault(figure, request.target_cosine))}
    cosine = min((figure.cosine for figure in judged), default=None)
    if faults:
        at = next(at for at, run in enumerate(runs) if any(fault(one, request.target_cosine) for one in run))
        broken = [one.name for one in runs[at] if one.name in faults and fault(one, request.target_cosine)]
        located, findings = _locate(trial, prepare, at, broken or list(faults))
        reason = next(iter(faults.values()))
        reason = reason if located is None else f"{reason}; first at {located.culprit}"
        return _Opinion("failed", reason, figures, cosine, located, findings)
    if silent:
        silence = f"probabilities of {', '.join(silent)} are all but zero on these inputs"
        return _Opinion("not verified", silence, figures, cosine)
    return _Opinion("passed", None, figures, cosine)


def _locate(
    trial: Trial, prepare: Prepare, feed: int, outputs: list[str]
) -> tuple[Located | None, tuple[VerdictFinding, ...]]:
    limit = _SHARE_OF_ONE_NODE * allowed_error(trial.request.target_cosine)
    try:
        return trial.locate(prepare, feed, outputs, limit), ()
    except Unverifiable as why:
        return None, (VerdictFinding("not-located", outputs[0], f"the node is not known: {why}"),)


def _pessimistic(trial: Trial, usual: _Opinion) -> tuple[VerdictName, tuple[VerdictFinding, ...]]:
    """The verdict when sums are in half too, and findings where that makes a difference or cannot be told."""
    left: list[Node] = []

    def prepare(skeleton: Skeleton) -> None:
        left[:] = accumulate_in_half(skeleton)
        emulate(skeleton)

    try:
        opinion = _opinion(trial, prepare, "half emulation with sums in half")
    except (Unverifiable, Incomparable) as why:
        return "not verified", (VerdictFinding("accumulation-not-verified", "graph", str(why)),)
    findings = _in_fp32(left)
    if opinion.verdict != usual.verdict:
        where = opinion.located.culprit.node if opinion.located else "graph"
        detail = f"{usual.verdict} with sums in FP32, {opinion.verdict} with sums in half: {opinion.reason}"
        findings.insert(0, VerdictFinding("accumulation", where, detail))
    return opinion.verdict, tuple(findings)


def _in_fp32(left: list[Node]) -> list[VerdictFinding]:
    """One finding for each operator whose sums nobody emulated in half."""
    return [
        VerdictFinding("accumulation-in-fp32", first, f"{count} {op} nodes, this one first: sums are emulated in FP32")
        for op, count in Counter(node.op for node in left).items()
        for first in (next(node.label for node in left if node.op == op),)
    ]


def _ranges(trial: Trial) -> tuple[Ranges | None, tuple[VerdictFinding, ...]]:
    names = float_values(trial.index)
    source = trial.request.source
    trial.progress("measuring ranges", 0, 1)
    try:
        largest = measure(load(source), source.parent, names, trial.feeds, trial.watchdog)
    except Unverifiable as why:
        return None, (VerdictFinding("ranges-not-measured", "graph", str(why)),)
    return ranges_of(trial.index, {name: largest[name] for name in names if name in largest}), ()
