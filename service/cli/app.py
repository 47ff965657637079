"""`atoll …`: assembles the commands and turns every failure into one line and an exit code.

Each command is a module with `register(app)`. It imports what it needs when it runs, so that `atoll --help` is quick.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from service import __version__, log
from service.cli import api, demo, doctor, download, submit, up, watch
from service.cli.failure import report
from service.cli.plugins import command_plugins

_OWN_COMMANDS = (up, api, submit, watch, download, doctor, demo)


def build_app() -> typer.Typer:
    """The application with its own commands and those of the installed plugins (`atoll.commands`)."""
    app = typer.Typer(name="atoll", add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_options)
    for command in _OWN_COMMANDS:
        command.register(app)
    for register in command_plugins():
        register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 it failed, 2 it was asked wrongly, 130 interrupted."""
    log.configure("WARNING", json=False)  # stdout is for answers; `api` and `worker` log as the settings say
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code."""
    try:
        code = build_app()(args=list(arguments), prog_name="atoll", standalone_mode=False)
    except Exception as error:
        return report(error, as_json="--json" in arguments, debug="--debug" in arguments)
    return code if isinstance(code, int) else 0


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,  # noqa: ARG001 read by `run`
) -> None:
    """FP32 ONNX in, a strongly typed TensorRT engine out: half precision where it is safe, and the proof."""
    if version:
        typer.echo(f"atoll {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
