"""`atoll download`: an engine's bytes, verified."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import JsonOption, OutputFile, ServerOption

if TYPE_CHECKING:
    from service.client import AtollClient


def register(app: typer.Typer) -> None:
    app.command()(download)


def download(
    source: Annotated[str, typer.Argument(metavar="DIGEST|BUILD", help="An engine's digest, or a build's id.")],
    out: OutputFile = None,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch an engine and check its sha256; the file appears only if it is right."""
    import json

    from service.canonical import is_digest
    from service.cli.progress import human_size
    from service.client import AtollClient
    from service.settings import load_settings

    with AtollClient(load_settings(server=server).server) as client:
        digest = source if is_digest(source) else _engine_of(client, source)
        target = out or Path(f"{digest[:16]}.engine")
        size = client.download(digest, target)
    if as_json:
        typer.echo(json.dumps({"digest": digest, "size": size, "file": str(target)}))
    else:
        typer.echo(f"{target}: {human_size(size)}, sha256 {digest} verified")


def _engine_of(client: "AtollClient", build: str) -> str:
    from service.errors import CommandError

    record = client.get(build)
    if record.engine is None:
        raise CommandError(f"build {build} has no engine: it is {record.status}. See `atoll watch {build}`")
    return record.engine.digest
