"""`atoll api`: the HTTP API alone."""

import socket
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.settings import Settings

_GRACE_SECONDS = 5


def register(app: typer.Typer) -> None:
    app.command()(api)


def api(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. [default: 8080]")] = None,
    fd: Annotated[int | None, typer.Option(hidden=True, help="A bound socket that was inherited.")] = None,
) -> None:
    """Run the HTTP API alone, against ATOLL_REDIS_URL and ATOLL_STORE."""
    from service import log
    from service.embedded.listen import bind
    from service.settings import load_settings

    settings = load_settings(host=host, port=port)
    log.configure(settings.log_level, settings.log_json)
    with bind(settings.host, settings.port) if fd is None else socket.socket(fileno=fd) as listener:
        _serve(settings, listener)


def _serve(settings: "Settings", listener: socket.socket) -> None:
    import uvicorn

    from service.errors import CommandError
    from service.main import create_app

    config = uvicorn.Config(
        lambda: create_app(settings),
        factory=True,
        lifespan="on",
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = uvicorn.Server(config)
    server.run(sockets=[listener])
    if not server.started:
        raise CommandError("the API did not start; its log says why")
