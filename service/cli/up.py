"""`atoll up`: everything on this machine with one command."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.embedded.stack import Stack


def register(app: typer.Typer) -> None:
    app.command()(up)


def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one. [default: 8080]")] = None,
    data_dir: Annotated[Path, typer.Option(help="Where everything is kept.")] = Path(".atoll"),
    as_json: Annotated[bool, typer.Option("--json", help="Say as one line of JSON where to go.")] = False,
) -> None:
    """Run the whole service here: an embedded Valkey, the API and one worker over one data directory."""
    from service.embedded.directory import DataDirectory
    from service.embedded.listen import bind
    from service.embedded.stack import Stack
    from service.embedded.supervisor import Supervisor
    from service.settings import load_settings

    settings = load_settings(host=host, port=port)
    directory = DataDirectory.create(data_dir)
    lock = directory.lock()
    with bind(settings.host, settings.port) as listener:
        stack = Stack(directory, listener, lock.fd)
        Supervisor(stack.specs(), _say).run(lambda: _announce(stack, as_json=as_json))
    lock.release()


def _announce(stack: "Stack", *, as_json: bool) -> None:
    root = str(stack.directory.root)
    if as_json:
        typer.echo(json.dumps({"url": stack.url, "pid": os.getpid(), "data_dir": root}))
        return
    typer.echo(f"""\
atoll is up: {stack.url}
  API documentation   {stack.url}/docs
  submit a model      atoll submit MODEL.onnx --watch --server {stack.url}
  data and logs       {root}
  stop                Ctrl-C""")


def _say(line: str) -> None:
    typer.echo(f"atoll: {line}", err=True)
