"""`atoll example`: models to try things on."""

from pathlib import Path
from typing import Annotated

import typer

from service.errors import CommandError

example = typer.Typer(help="Write an example model, with random weights from a seed.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(example, name="example")


@example.callback()
def _example() -> None:
    """Keeps `audio-dit` a command of its own while it is the only one."""


@example.command("audio-dit")
def audio_dit(
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    layers: Annotated[int, typer.Option(min=1)] = 4,
    dim: Annotated[int, typer.Option(min=64, help="A multiple of 64, the size of a head.")] = 256,
    exporter: Annotated[str, typer.Option(help="Whose spelling: torchscript, dynamo or opset23.")] = "torchscript",
    differential: Annotated[bool, typer.Option("--differential", help="Two softmaxes an attention.")] = False,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """An audio diffusion transformer: RMSNorm with hot channels, rotary embedding, masked cross-attention."""
    from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit

    spellings: dict[str, Exporter] = {"torchscript": "torchscript", "dynamo": "dynamo", "opset23": "opset23"}
    if exporter not in spellings:
        raise CommandError(f"--exporter {exporter!r} is not known: use {', '.join(spellings)}")
    if dim % 64:
        raise CommandError(f"--dim {dim} is not a multiple of 64, the size of a head")
    write_audio_dit(
        out,
        AudioDiTConfig(
            layers=layers,
            dim=dim,
            heads=dim // 64,
            exporter=spellings[exporter],
            differential=differential,
            seed=seed,
        ),
    )
    typer.echo(str(out))
