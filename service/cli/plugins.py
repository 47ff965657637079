"""Commands and checks of other packages, found by entry-point group: the command line knows no worker."""

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Any

import typer


def command_plugins() -> Iterator[Callable[[typer.Typer], None]]:
    """What the entry points of the group `atoll.commands` load: functions that add a command to the application."""
    return _load("atoll.commands")


def check_plugins() -> Iterator[Callable[[], Any]]:
    """What the entry points of the group `atoll.checks` load: functions that answer checks for `atoll doctor`."""
    return _load("atoll.checks")


def _load(group: str) -> Iterator[Callable[..., Any]]:
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            yield entry.load()
        except (ImportError, AttributeError) as error:
            typer.echo(f"atoll: {group} {entry.name!r} ({entry.value}) cannot be loaded: {error}", err=True)
