"""How a build is shown while it runs and when it has ended: plain lines, the same on a terminal and in a log."""

import typer

from service.builds.types import BuildRecord, Proof, Status
from service.errors import Problem

_UNITS = ("B", "kB", "MB", "GB", "TB")


class StageLines:
    """Prints one line for each stage that a build enters, with what the last one took."""

    def __init__(self) -> None:
        self._seen = 0
        self._current: str | None = None

    def show(self, record: BuildRecord) -> None:
        for timing in record.stages[self._seen :]:
            typer.echo(f"  {timing.name:<11} {timing.seconds:8.2f} s")
        self._seen = max(self._seen, len(record.stages))
        if record.status is Status.QUEUED and self._current is None:
            self._current = "queued"
            typer.echo("  queued")


def outcome(record: BuildRecord) -> str:
    """One line: how the build ended, and what to do next."""
    match record.status:
        case Status.SUCCEEDED if record.engine is not None:
            return f"succeeded: engine {record.engine.digest} ({human_size(record.engine.size)})"
        case Status.SUCCEEDED if record.onnx is not None:
            return f"succeeded: graph {record.onnx.digest} ({human_size(record.onnx.size)}) at {record.onnx.url}"
        case Status.FAILED if record.problem is not None:
            return f"failed: {_told(record.problem)}"
        case _:
            return str(record.status)


def _told(problem: Problem) -> str:
    """Title and detail; many details begin with the title themselves."""
    if problem.detail.startswith(problem.title):
        return problem.detail
    return f"{problem.title}: {problem.detail}"


def proof_lines(proof: Proof) -> list[str]:
    """What was measured about the result."""
    lines = [f"verdict        {proof.verdict}" + (f" ({proof.reason})" if proof.reason else "")]
    if proof.cosine is not None:
        lines.append(f"cosine         {proof.cosine:.7f} against FP32")
    if proof.half_tensor_share is not None:
        lines.append(f"half tensors   {proof.half_tensor_share:.1%} of the float tensors")
    if proof.attentions is not None:
        fused = "" if proof.fused_attentions is None else f"{proof.fused_attentions} fused, "
        lines.append(f"attention      {fused}{proof.attentions} cores in the graph")
    if proof.culprit is not None:
        lines.append(f"begins at      {proof.culprit}")
    if proof.pessimistic is not None and proof.pessimistic != proof.verdict:
        lines.append(f"sums in half   {proof.pessimistic}")
    lines += [f"finding        {finding}" for finding in proof.findings]
    lines.append(f"builder        {len(proof.builder_warnings)} warnings")
    return lines + [f"               {warning}" for warning in proof.builder_warnings]


def human_size(count: float) -> str:
    """Bytes in decimal units."""
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} {_UNITS[-1]}"
