"""`atoll submit`: a model on this machine becomes a build on a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.options import JsonOption, ServerOption

if TYPE_CHECKING:
    from service.client import AtollClient, LocalModel


def register(app: typer.Typer) -> None:
    app.command()(submit)


def submit(
    model: Annotated[Path, typer.Argument(help="An FP32 ONNX file; its external data is sent along.")],
    mode: Annotated[str | None, typer.Option(help="minimal, rope (default), full, auto or none.")] = None,
    trunk: Annotated[str | None, typer.Option(help="fp16 (default) or bf16.")] = None,
    arch: Annotated[str | None, typer.Option(help="portable, sm_XX, or several: sm_86+sm_89.")] = None,
    toolchain: Annotated[str | None, typer.Option(help="tensorrt or tensorrt-rtx.")] = None,
    profile: Annotated[list[str] | None, typer.Option(help="NAME=MIN:OPT:MAX for each dynamic input.")] = None,
    preset: Annotated[str | None, typer.Option(help="Named profiles.")] = None,
    output: Annotated[str | None, typer.Option(help="engine (default), or onnx to stop after the check.")] = None,
    workspace_gb: Annotated[float | None, typer.Option(help="Largest workspace of the builder.")] = None,
    optimization_level: Annotated[int | None, typer.Option(help="0 to 5.")] = None,
    no_bounded_attention: Annotated[bool, typer.Option("--no-bounded-attention")] = False,
    keep_fp32: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in FP32.")] = None,
    keep_trunk: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in the trunk dtype.")] = None,
    samples: Annotated[list[Path] | None, typer.Option(help="Inputs to judge on: .npz, or .pb tensors.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="NAME=VALUE.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 9.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the end; exit 1 unless it succeeds.")] = False,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Upload a model, unless the server has it, and ask for a build."""
    from service.builds.profile_text import dump_profiles, parse_profiles
    from service.cli.watch import follow, show
    from service.client import AtollClient, LocalModel
    from service.settings import load_settings

    spec: dict[str, Any] = {
        "mode": mode,
        "trunk": trunk,
        "arch": arch,
        "toolchain": toolchain,
        "profiles": dump_profiles(parse_profiles(profile or ())),
        "preset": preset,
        "output": output,
        "workspace_gb": workspace_gb,
        "optimization_level": optimization_level,
        "bounded_attention": False if no_bounded_attention else None,
        "keep_fp32": keep_fp32,
        "keep_trunk": keep_trunk,
        "labels": dict(map(_label, label or ())),
        "priority": priority,
    }
    given = {name: value for name, value in spec.items() if value not in (None, [], {})}
    local = LocalModel.read(model)
    with AtollClient(load_settings(server=server).server) as client:
        _upload_if_new(client, local, quiet=as_json)
        if samples:
            given["accuracy"] = {"samples": [client.upload_sample(path) for path in _existing(samples)]}
        submission = client.submit(local.id, given)
        if not (as_json and watch):
            show(submission.build, cached=submission.cached, as_json=as_json)
        if watch:
            follow(client, submission.build.id, as_json=as_json)


def _upload_if_new(client: "AtollClient", model: "LocalModel", *, quiet: bool) -> None:
    from service.cli.progress import human_size

    known = client.has_model(model.id)
    if not known:
        client.upload(model)
    if not quiet:
        typer.echo(f"model  {model.id}  ({human_size(model.size)}, {'already there' if known else 'uploaded'})")


def _existing(files: list[Path]) -> list[Path]:
    from service.errors import CommandError

    if missing := [file for file in files if not file.is_file()]:
        raise CommandError(f"{missing[0]}: there is no such file")
    return files


def _label(text: str) -> tuple[str, str]:
    from service.errors import CommandError

    name, separator, value = text.partition("=")
    if not name or not separator:
        raise CommandError(f"--label {text!r}: write NAME=VALUE, as in --label team=audio")
    return name, value
