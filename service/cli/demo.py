"""`atoll demo`: what `make demo` runs."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    model: Annotated[Path | None, typer.Argument(help="Your model; without it two others are built.")] = None,
    profile: Annotated[list[str] | None, typer.Option(help="NAME=MIN:OPT:MAX for its dynamic inputs.")] = None,
    folder: Annotated[Path, typer.Option(help="Where models are kept and engines are put.")] = Path(".demo"),
) -> None:
    """Start the service, build a model or two, download and verify the engines, show the proof, stop."""
    from service.builds.profile_text import parse_profiles
    from service.demo.models import DemoModel, default_models
    from service.demo.run import run_demo

    cache = folder / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    given = parse_profiles(profile or ())
    models = [DemoModel(str(model), model, given or None)] if model else default_models(cache)
    if not run_demo(models, folder):
        raise typer.Exit(1)
