"""The findings as tables: the same rows for the terminal and for the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from benchmarks.peers.catalogue import OURS
from benchmarks.peers.contenders import Contender
from benchmarks.peers.operator_comparison import OperatorFinding
from benchmarks.peers.real_comparison import RealFinding

_LONGEST_CELL = 60


@dataclass(frozen=True, slots=True)
class Sheet:
    """A titled table of texts; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def rich(self) -> Table:
        table = Table(*self.head, title=self.title)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def operator_sheet(findings: Mapping[str, Sequence[OperatorFinding]]) -> Sheet:
    """A column a converter, a row a question."""
    rows = [(label, *(figure(found) for found in findings.values())) for label, figure in _OPERATOR_FIGURES.items()]
    good = {name: sum(finding.correct for finding in found) for name, found in findings.items()}
    count = max(map(len, findings.values()), default=0)
    return Sheet(f"{count} ONNX operator tests", ("", *findings), (*rows, _ratios(good)))


def real_sheet(findings: Mapping[str, Sequence[RealFinding]]) -> Sheet:
    """As of the operator tests, for real models."""
    rows = [(label, *(figure(found) for found in findings.values())) for label, figure in _REAL_FIGURES.items()]
    good = {name: sum(finding.good for finding in found) for name, found in findings.items()}
    count = max(map(len, findings.values()), default=0)
    return Sheet(f"{count} real models", ("", *findings), (*rows, _ratios(good)))


def model_sheet(findings: Mapping[str, Sequence[RealFinding]]) -> Sheet:
    """Each model by itself: the cosine, what is wrong, fused attentions, the time."""
    lines = zip(*findings.values(), strict=True)
    rows = tuple((line[0].model.name, *map(_cell, line)) for line in lines)
    return Sheet("Each real model", ("", *findings), rows)


def contender_sheet(contenders: Sequence[Contender]) -> Sheet:
    """What was called, and in which version."""
    rows = tuple((each.peer.name, each.versions or f"not run: {each.absent}", each.peer.call) for each in contenders)
    return Sheet("Converters", ("", "versions", "called as"), rows)


# --- figures ---------------------------------------------------------------------------------------------------------


def _share(hits: int, count: int) -> str:
    return f"{hits} / {count}"


def _operators_without(field: str) -> Callable[[Sequence[OperatorFinding]], str]:
    return lambda found: _share(sum(not getattr(finding, field) for finding in found), len(found))


def _reals_without(field: str) -> Callable[[Sequence[RealFinding]], str]:
    return lambda found: _share(sum(not getattr(finding, field) for finding in found), len(found))


def _parsed(found: Sequence[OperatorFinding]) -> str:
    judged = [finding for finding in found if finding.parse is not None]
    return _share(sum(not finding.parse for finding in judged), len(judged))


def _parsed_real(found: Sequence[RealFinding]) -> str:
    judged = [finding for finding in found if not finding.baseline.parse]
    return _share(sum(not finding.parse for finding in judged), len(judged))


def _built_real(found: Sequence[RealFinding]) -> str:
    judged = [finding for finding in found if not finding.baseline.build]
    return _share(sum(not finding.build for finding in judged), len(judged))


def _more_built(found: Sequence[RealFinding]) -> str:
    judged = [finding for finding in found if finding.baseline.build]
    return _share(sum(not finding.build for finding in judged), len(judged))


_OPERATOR_FIGURES: dict[str, Callable[[Sequence[OperatorFinding]], str]] = {
    "converts": _operators_without("converts"),
    "passes the ONNX checker": _operators_without("checker"),
    "… once its nodes are put in order": _operators_without("reordered"),
    "keeps names and types of inputs and outputs": _operators_without("interface"),
    "right under half emulation": _operators_without("right"),
    "all of these": lambda found: _share(sum(finding.correct for finding in found), len(found)),
    "all of these once its nodes are put in order": lambda found: _share(
        sum(finding.correct_in_order for finding in found), len(found)
    ),
    "all of these, and something is FP16": lambda found: str(sum(each.correct and each.half for each in found)),
    "parsed strongly typed, of what is in FP32": _parsed,
    "time a conversion, median": lambda found: f"{1000 * median(each.seconds for each in found):.1f} ms",
    "CPU time of all conversions": lambda found: f"{sum(each.cpu_seconds for each in found):.1f} s",
}
_REAL_FIGURES: dict[str, Callable[[Sequence[RealFinding]], str]] = {
    "converts": _reals_without("converts"),
    "passes the ONNX checker": _reals_without("checker"),
    "… once its nodes are put in order": _reals_without("reordered"),
    "keeps names and types of inputs and outputs": _reals_without("interface"),
    "close to FP32 under half emulation": _reals_without("close"),
    "parsed strongly typed, of what is in FP32": _parsed_real,
    "engine built, of what builds in FP32": _built_real,
    "engine built, of what does not build in FP32": _more_built,
    "fused attentions, of all attention cores": lambda found: _share(
        sum(finding.fused for finding in found), sum(finding.model.cores for finding in found)
    ),
    "models whose builder warns of norms in FP16": lambda found: str(sum(finding.norm_warning for finding in found)),
    "valid, close, and taken where FP32 is": lambda found: _share(sum(each.good for each in found), len(found)),
    "… once its nodes are put in order, these": lambda found: _share(
        sum(each.good_in_order for each in found), len(found)
    ),
    "time of all conversions": lambda found: f"{sum(finding.seconds for finding in found):.2f} s",
    "CPU time of all conversions": lambda found: f"{sum(finding.cpu_seconds for finding in found):.2f} s",
}


def _ratios(good: Mapping[str, int]) -> tuple[str, ...]:
    ours = good.get(OURS)
    if ours is None:
        return ("ours / this one", *("-" for _ in good))
    return ("ours / this one", *(f"{ours / count:.2f}" if count else "-" for count in good.values()))


def _cell(finding: RealFinding) -> str:
    if finding.converts:
        return f"not converted: {finding.converts[:_LONGEST_CELL]}…"
    parts = (
        f"{finding.cosine:.6f}" if finding.cosine is not None else "does not run",
        "not finite" if "finite" in finding.close else "",
        "" if not finding.checker else "invalid" if finding.reordered else "unsorted",
        "interface changed" if finding.interface else "",
        "refused by TensorRT" if finding.lost_by_tensorrt else "",
        f"{finding.fused} of {finding.model.cores} fused" if finding.model.cores else "",
        "norm warning" if finding.norm_warning else "",
        f"{finding.seconds:.2f} s",
    )
    return ", ".join(part for part in parts if part)
