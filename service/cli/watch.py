"""`atoll watch`: a build, stage by stage, to its end."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import JsonOption, ServerOption

if TYPE_CHECKING:
    from service.builds.types import BuildRecord
    from service.client import AtollClient


def register(app: typer.Typer) -> None:
    app.command()(watch)


def watch(
    build: Annotated[str, typer.Argument(help="The build's id.")],
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a build stage by stage until it ends; exit 1 unless it succeeds."""
    from service.client import AtollClient
    from service.settings import load_settings

    with AtollClient(load_settings(server=server).server) as client:
        follow(client, build, as_json=as_json)


def follow(client: "AtollClient", build: str, *, as_json: bool) -> None:
    """Print what happens to the build (with `as_json` only the final record). Raises typer.Exit(1) if it fails."""
    from service.builds.types import Status

    record = _followed(client, build, quiet=as_json)
    if as_json:
        typer.echo(record.model_dump_json())
    if record.status is not Status.SUCCEEDED:
        raise typer.Exit(1)


def show(record: "BuildRecord", *, cached: bool, as_json: bool) -> None:
    """One line about a build that was just submitted; its JSON record if asked for."""
    if as_json:
        typer.echo(record.model_dump_json())
        return
    typer.echo(f"build  {record.id}  {'already built' if cached else record.status}")


def _followed(client: "AtollClient", build: str, *, quiet: bool) -> "BuildRecord":
    from service.cli.progress import StageLines, outcome, proof_lines

    lines = StageLines()
    for record in client.watch(build):
        if not quiet:
            lines.show(record)
    if not quiet:
        typer.echo(outcome(record))
        for line in proof_lines(record.proof) if record.proof else ():
            typer.echo(f"  {line}")
        if record.engine is not None:
            typer.echo(f"  to fetch it    atoll download {record.engine.digest}")
    return record
