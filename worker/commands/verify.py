"""`atoll verify` and `atoll diff`: compare two models, one of them in half precision, without building anything."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.builds.profile_text import parse_profiles
from service.builds.types import AccuracySpec
from service.errors import CheckFailed, CommandError

if TYPE_CHECKING:
    from worker.verify.locate import Located
    from worker.verify.types import Culprit, Verdict, VerifyRequest

_TARGET = AccuracySpec().target_cosine
_LIMIT = 0.01

Reference = Annotated[Path, typer.Argument(metavar="A.onnx", help="The reference; it runs as it is written.")]
Other = Annotated[Path, typer.Argument(metavar="B.onnx", help="What is held against it, under emulated half.")]
Samples = Annotated[list[Path] | None, typer.Option(help="Inputs: .npz, or .pb tensors; without, they are generated.")]
Profiles = Annotated[list[str] | None, typer.Option("--profile", help="NAME=MIN:OPT:MAX for each dynamic input.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def register(app: typer.Typer) -> None:
    app.command()(verify)
    app.command()(diff)


def verify(
    reference: Reference,
    other: Other,
    samples: Samples = None,
    profile: Profiles = None,
    target_cosine: Annotated[float, typer.Option(min=0.0, max=1.0, help="What every output has to reach.")] = _TARGET,
    pessimistic: Annotated[
        bool, typer.Option("--pessimistic", help="Also with sums in half, as a GPU may add up; both have to pass.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare every output of two models; exit 1 unless the verdict is `passed`."""
    from worker.verify.run import verify_conversion

    request = _request(
        reference, other, samples, profile, target_cosine=target_cosine, pessimistic=pessimistic, any_interface=True
    )
    verdict = verify_conversion(request)
    typer.echo(json.dumps(asdict(verdict)) if as_json else _verdict_text(verdict))
    if verdict.verdict != "passed" or verdict.pessimistic not in (None, "passed"):
        raise typer.Exit(1)


def diff(
    reference: Reference,
    other: Other,
    samples: Samples = None,
    profile: Profiles = None,
    limit: Annotated[float, typer.Option(min=0.0, help="Relative error from which on a tensor has drifted.")] = _LIMIT,
    as_json: AsJson = False,
) -> None:
    """Find the first tensor, and its node, that drifts between two models; exit 1 if there is one."""
    from worker.verify.difference import difference
    from worker.verify.types import Unverifiable

    request = _request(reference, other, samples, profile)
    try:
        located = difference(request, limit, _quiet)
    except Unverifiable as why:
        raise CheckFailed(f"the models cannot be compared: {why}") from why
    drifts = located is not None and located.worst.exceeds(limit)
    typer.echo(json.dumps(_located_json(located, drifts)) if as_json else _located_text(located, drifts, limit))
    if drifts:
        raise typer.Exit(1)


def _request(
    reference: Path, other: Path, samples: list[Path] | None, profile: list[str] | None, **options: Any
) -> "VerifyRequest":
    from worker.verify.types import VerifyRequest

    for path in (reference, other, *(samples or ())):
        if not path.is_file():
            raise CommandError(f"{path}: there is no such file")
    profiles = tuple(
        {name: (shape.min, shape.opt, shape.max) for name, shape in one.items()}
        for one in parse_profiles(profile or ())
    )
    return VerifyRequest(reference, other, profiles, samples=tuple(samples or ()), **options)


def _quiet(_phase: str, _step: int, _of: int) -> None:
    """Nobody listens."""


def _verdict_text(verdict: "Verdict") -> str:
    lines = [f"{verdict.verdict} on {verdict.inputs} inputs" + (f": {verdict.reason}" if verdict.reason else "")]
    if verdict.pessimistic is not None:
        lines.append(f"  with sums in half: {verdict.pessimistic}")
    for figure in verdict.outputs:
        error = "none" if figure.relative_l2 is None else f"{figure.relative_l2:.3g}"
        lines.append(
            f"  {figure.name!r}: cosine {figure.cosine:.7f}, relative error {error}, largest {figure.max_error:.3g}, "
            f"{figure.nonfinite} inf or NaN"
        )
    if verdict.culprit is not None and verdict.worst is not None:
        lines += _culprit_lines(verdict.culprit, verdict.worst)
    lines += [f"  {finding.kind} at {finding.where}: {finding.detail}" for finding in verdict.findings]
    return "\n".join(lines)


def _culprit_lines(culprit: "Culprit", worst: "Culprit") -> list[str]:
    return [f"  first: {culprit}, tensor {culprit.tensor!r}", f"  worst: {worst}, tensor {worst.tensor!r}"]


def _located_text(located: "Located | None", drifts: bool, limit: float) -> str:
    if located is None:
        return "every tensor that both models have is equal"
    if not drifts:
        return f"no tensor drifts by more than {limit:g}; the worst is of {located.worst}"
    return "\n".join(line.strip() for line in _culprit_lines(located.culprit, located.worst))


def _located_json(located: "Located | None", drifts: bool) -> dict[str, Any]:
    found = (
        {"first": None, "worst": None}
        if located is None
        else {"first": asdict(located.culprit), "worst": asdict(located.worst)}
    )
    return {"drifts": drifts, **found}
