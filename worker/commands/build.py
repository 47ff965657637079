"""`atoll build`: convert, check, build and inspect one model, offline; the same steps as a build of the service."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from service.builds.presets import preset as preset_named
from service.builds.profile_text import parse_profiles
from service.builds.profiles import resolve_profiles
from service.builds.targets import resolve_target
from service.builds.types import AccuracySpec, BuildSpec, Mode, Trunk
from service.errors import CommandError, NoWorker
from service.wire.beside import FilesBeside
from service.wire.file import scan_file

if TYPE_CHECKING:
    from worker.steps.context import Work


def register(app: typer.Typer) -> None:
    app.command()(build)


def build(
    model: Annotated[Path, typer.Argument(metavar="IN.onnx", help="An FP32 model.")],
    out: Annotated[Path, typer.Option(help="File for the engine; ENGINE.report.json goes beside it.")],
    mode: Annotated[Mode, typer.Option(help="Which islands are kept in FP32.")] = Mode.ROPE,
    trunk: Annotated[Trunk, typer.Option(help="The dtype outside islands.")] = Trunk.FP16,
    arch: Annotated[str | None, typer.Option(help="portable, sm_XX, or several: sm_86+sm_89.")] = None,
    toolchain: Annotated[str | None, typer.Option(help="tensorrt or tensorrt-rtx.")] = None,
    profile: Annotated[list[str] | None, typer.Option(help="NAME=MIN:OPT:MAX for each dynamic input.")] = None,
    preset: Annotated[str | None, typer.Option(help="Named profiles.")] = None,
    workspace_gb: Annotated[float, typer.Option(help="Largest workspace of the builder.")] = 16,
    optimization_level: Annotated[int, typer.Option(help="0 to 5.")] = 3,
    no_bounded_attention: Annotated[bool, typer.Option("--no-bounded-attention")] = False,
    keep_fp32: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in FP32.")] = None,
    keep_trunk: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in the trunk dtype.")] = None,
    samples: Annotated[list[Path] | None, typer.Option(help="Inputs to judge on: .npz, or .pb tensors.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the log while it is written.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Convert, check and build one model without a server."""
    from worker.commands.offline import OfflineJob, ShownNotes, run_offline

    spec = _spec(
        model,
        profile or [],
        mode=mode,
        trunk=trunk,
        arch=arch,
        toolchain=toolchain,
        preset=preset,
        workspace_gb=workspace_gb,
        optimization_level=optimization_level,
        bounded_attention=not no_bounded_attention,
        keep_fp32=tuple(keep_fp32 or ()),
        keep_trunk=tuple(keep_trunk or ()),
        accuracy=AccuracySpec(samples=tuple(file_digest(path) for path in samples or ())),
    )
    if out.resolve() == model.resolve():
        raise CommandError(f"{out} is the model itself; choose another --out")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        work = run_offline(OfflineJob(spec, model, Path(folder), ShownNotes(verbose), tuple(samples or ())))
        report = _write(work, Path(folder) / "model.engine", out)
    _show(work, out, report, as_json=as_json)


def _spec(model: Path, profiles: list[str], **options: Any) -> BuildSpec:
    """The complete spec: arch and toolchain of this machine, a range for each dynamic input."""
    digest = file_digest(model)
    scan = scan_file(model, FilesBeside(model))
    try:
        spec = BuildSpec(model=digest, **options)
    except ValidationError as error:
        raise CommandError("; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())) from None
    defaults = preset_named(spec.preset) if spec.preset else None
    ranges = resolve_profiles(scan.inputs, parse_profiles(profiles), defaults)
    return _for_this_machine(spec.model_copy(update={"profiles": ranges}))


def file_digest(path: Path) -> str:
    """Raises CommandError when there is no such file."""
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _for_this_machine(spec: BuildSpec) -> BuildSpec:
    from worker.announce import worker_info
    from worker.engine.toolchains import available_toolchains

    offers = available_toolchains()
    if not offers:
        raise CommandError("no toolchain is installed here: pip install 'atoll[worker]'; `atoll doctor` says more")
    try:
        return resolve_target(spec, [worker_info(offers)]).spec
    except NoWorker:
        here = "; ".join(f"{offer.toolchain} for {', '.join(offer.archs)}" for offer in offers)
        raise CommandError(f"{spec.arch} cannot be built on this machine; there is {here}") from None


def _write(work: "Work", engine: Path, out: Path) -> Path:
    from worker.steps.report import report_of

    report = out.with_name(f"{out.name}.report.json")
    proof = {"proof": work.proof.model_dump(mode="json")}
    report.write_text(json.dumps({**report_of(work), **proof}, indent=1) + "\n")
    engine.replace(out)
    return report


def _show(work: "Work", out: Path, report: Path, *, as_json: bool) -> None:
    size = out.stat().st_size
    proof = work.proof
    if as_json:
        facts = {"engine": str(out), "size": size, "report": str(report), "proof": proof.model_dump(mode="json")}
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"{out}: {size} bytes; report: {report}")
    typer.echo(f"  {proof.verdict}, cosine {proof.cosine}; {proof.fused_attentions} fused attentions")
    if proof.reason:
        typer.echo(f"  why: {proof.reason}")
    for finding in proof.findings:
        typer.echo(f"  finding: {finding}")
    for warning in proof.builder_warnings:
        typer.echo(f"  builder: {warning}")
