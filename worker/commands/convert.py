"""`atoll convert`: ONNX in, half-precision ONNX with FP32 islands out; no server."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.builds.profile_text import parse_profiles
from service.builds.types import AccuracySpec, Mode, Profile, Trunk
from service.errors import AtollError, CommandError, ConversionFailed
from worker.commands.recipe import read_recipe, write_recipe

if TYPE_CHECKING:
    from worker.precision.report import ConversionReport
    from worker.types import ConvertRequest

DEFAULT_TARGET = AccuracySpec().target_cosine


def register(app: typer.Typer) -> None:
    app.command()(convert)


def convert(
    context: typer.Context,
    models: Annotated[list[Path], typer.Argument(metavar="IN.onnx…", help="FP32 models.")],
    out_dir: Annotated[Path, typer.Option(help="Folder for NAME.onnx and NAME.report.json.")],
    mode: Annotated[Mode, typer.Option(help="Which islands are kept in FP32.")] = Mode.ROPE,
    trunk: Annotated[Trunk, typer.Option(help="The dtype outside islands.")] = Trunk.FP16,
    no_bounded_attention: Annotated[
        bool, typer.Option("--no-bounded-attention", help="Leave attention cores in islands where they fall into one.")
    ] = False,
    keep_fp32: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in FP32.")] = None,
    keep_trunk: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in the trunk dtype.")] = None,
    target_cosine: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="What mode auto has to meet against FP32.")
    ] = DEFAULT_TARGET,
    profile: Annotated[
        list[str] | None, typer.Option(help="NAME=MIN:OPT:MAX for each dynamic input, for the samples of mode auto.")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="With --mode auto: write what was found to this file. Else: convert by it.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Write NAME.report.html too, the report as a page.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", "--text", help="Print the report, not only its summary.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each model.")] = False,
) -> None:
    """Convert models without building; goes on after a failure and then exits 1."""
    options = Conversion(
        mode,
        trunk,
        not no_bounded_attention,
        tuple(keep_fp32 or ()),
        tuple(keep_trunk or ()),
        target_cosine,
        parse_profiles(profile or ()),
    )
    pairs = plan_outputs(models, out_dir)
    if recipe is not None and mode is not Mode.AUTO:
        options = follow(recipe, options, given=_given(context))
    elif recipe is not None and len(pairs) > 1:
        raise CommandError(f"{recipe} can hold the recipe of one model only; convert them one at a time")
    out_dir.mkdir(parents=True, exist_ok=True)
    failures = 0
    for source, target in pairs:
        outcome = _convert_one(source, target, options, html=html, quiet=as_json)
        failures += outcome.problem is not None
        if recipe is not None and outcome.report is not None and outcome.report.auto is not None:
            write_recipe(recipe, outcome.report.auto.recipe)
        _show(outcome, as_json=as_json, verbose=verbose)
    if failures:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Conversion:
    """How to convert: what `convert` asks for, and of it what `explain` does."""

    mode: Mode
    trunk: Trunk
    bounded_attention: bool
    keep_fp32: tuple[str, ...] = ()
    keep_trunk: tuple[str, ...] = ()
    target_cosine: float = DEFAULT_TARGET
    profiles: tuple[Profile, ...] = ()


def follow(recipe: Path, options: Conversion, given: Sequence[str]) -> Conversion:
    """The recipe's options instead. Raises CommandError for no recipe, or where the user `given` some of them too."""
    if given:
        raise CommandError(f"{recipe} decides about {', '.join(given)}; leave {', '.join(given)} or --recipe out")
    found = read_recipe(recipe)
    try:
        mode, trunk = Mode(found.mode), Trunk(found.trunk)
    except ValueError as error:
        raise CommandError(f"{recipe} is no recipe: {error}") from None
    return replace(
        options,
        mode=mode,
        trunk=trunk,
        bounded_attention=found.bounded_attention,
        keep_fp32=found.keep_fp32,
        keep_trunk=found.keep_trunk,
    )


def _given(context: typer.Context) -> list[str]:
    """What a recipe decides about, and the user wrote too."""
    names = ("mode", "trunk", "no_bounded_attention", "keep_fp32", "keep_trunk")
    sources = {name: context.get_parameter_source(name) for name in names}
    return [f"--{name.replace('_', '-')}" for name, source in sources.items() if source and source.name != "DEFAULT"]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one model: a report, or the problem."""

    source: Path
    target: Path
    report: "ConversionReport | None" = None
    page: Path | None = None
    problem: AtollError | None = None


def plan_outputs(models: Sequence[Path], out_dir: Path) -> tuple[tuple[Path, Path], ...]:
    """Each model with the file it becomes. Raises CommandError if one would be overwritten, by another or itself."""
    pairs = tuple((model, out_dir / f"{model.stem}.onnx") for model in models)
    inputs = {model.resolve() for model in models}
    taken: dict[Path, Path] = {}
    for source, target in pairs:
        if target.resolve() in inputs:
            raise CommandError(f"{target} is an input and would be overwritten; choose another --out-dir")
        if target in taken:
            raise CommandError(f"{taken[target]} and {source} would both become {target}; convert them one at a time")
        taken[target] = source
    return pairs


def run_conversion(source: Path, target: Path, options: Conversion, *, quiet: bool) -> "ConversionReport":
    """Convert one file, with a progress bar unless `quiet`. Raises AtollError for whatever is wrong with it."""
    from worker.commands.bar import byte_bar
    from worker.conversion import convert
    from worker.graph.save import Watch

    request = conversion_request(source, target, options)
    if quiet:
        return convert(request)
    with byte_bar(source.name) as on_bytes:
        return convert(request, Watch(on_bytes))


def conversion_request(source: Path, target: Path, options: Conversion) -> "ConvertRequest":
    """What the converter is asked. Raises CommandError when there is no file to convert."""
    from worker.types import ConvertRequest

    if not source.is_file():
        raise CommandError(f"{source}: there is no such file")
    return ConvertRequest(
        source=source,
        target=target,
        mode=options.mode,
        trunk=options.trunk,
        bounded_attention=options.bounded_attention,
        keep_fp32=options.keep_fp32,
        keep_trunk=options.keep_trunk,
        target_cosine=options.target_cosine,
        profiles=tuple(
            {name: (shape.min, shape.opt, shape.max) for name, shape in profile.items()} for profile in options.profiles
        ),
    )


def _convert_one(source: Path, target: Path, options: Conversion, *, html: bool, quiet: bool) -> _Outcome:
    try:
        report = run_conversion(source, target, options, quiet=quiet)
    except AtollError as error:
        return _Outcome(source, target, problem=error)
    except OSError as error:
        return _Outcome(source, target, problem=CommandError(f"{error.filename or target}: {error.strerror}"))
    except MemoryError:
        return _Outcome(source, target, problem=ConversionFailed(f"{source}: there is not enough memory"))
    report_file(target).write_text(report.model_dump_json(indent=2) + "\n")
    return _Outcome(source, target, report=report, page=_write_page(target, report) if html else None)


def _write_page(target: Path, report: "ConversionReport") -> Path:
    from worker.precision.views.html import render_html

    page = report_file(target).with_suffix(".html")
    page.write_text(render_html(target.name, report))
    return page


def report_file(target: Path) -> Path:
    """Where the report of a converted model or engine goes."""
    return target.with_name(f"{target.stem if target.suffix == '.onnx' else target.name}.report.json")


def _show(outcome: _Outcome, *, as_json: bool, verbose: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_json(outcome)))
        return
    if outcome.problem is not None:
        typer.echo(f"atoll: {outcome.source}: {outcome.problem.title}: {outcome.problem.detail}", err=True)
        return
    for line in _report(outcome) if verbose else _summary(outcome):
        typer.echo(line)


def _as_json(outcome: _Outcome) -> dict[str, object]:
    if outcome.problem is not None:
        return {"input": str(outcome.source), "problem": outcome.problem.problem().model_dump(exclude_none=True)}
    return {
        "input": str(outcome.source),
        "output": str(outcome.target),
        "report": str(report_file(outcome.target)),
        **({"page": str(outcome.page)} if outcome.page else {}),
        "counts": outcome.report.counts.model_dump() if outcome.report else None,
    }


def _report(outcome: _Outcome) -> Iterator[str]:
    if outcome.report is None:
        return
    from worker.precision.views.text import render_text

    yield f"{outcome.source} -> {outcome.target} ({outcome.report.seconds:.2f} s)"
    yield render_text(outcome.report)


def _summary(outcome: _Outcome) -> Iterator[str]:
    report = outcome.report
    if report is None:
        return
    islands = ", ".join(f"{count} {family}" for family, count in sorted(report.islands_by_family.items())) or "none"
    cores = sum(core.bounded for core in report.attentions)
    yield f"{outcome.source} -> {outcome.target} ({report.seconds:.2f} s)"
    yield f"  half tensors  {report.counts.half_tensor_share:.1%} of {report.counts.float_tensors} float tensors"
    yield f"  islands       {islands}"
    yield f"  attention     {cores} of {len(report.attentions)} cores in the trunk dtype"
    if report.auto is not None:
        yield f"  auto          {report.auto.outcome}: {report.auto.reason}"
