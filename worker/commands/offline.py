"""A build without a service: the steps between fetching and publishing, on files of the user's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import typer

from service.builds.types import BuildSpec
from worker.steps.build import build
from worker.steps.check import check
from worker.steps.context import Work
from worker.steps.convert import convert
from worker.steps.inspect import inspect

_STEPS = (convert, check, build, inspect)
_SECONDS = 4 * 3600.0
_MEMORY_SHARE = 0.9


class ShownNotes:
    """The log of an offline build: on stderr if it is wanted, and kept for nobody."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def note(self, text: str) -> None:
        if self._shown:
            typer.echo(text, err=True)

    def take(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "message":
            self.note(f"{event['severity']}: {event['text']}")


@dataclass(frozen=True, slots=True)
class OfflineJob:
    """A `worker.steps.context.Job` without store, broker and lease."""

    spec: BuildSpec
    source: Path
    folder: Path
    journal: ShownNotes
    samples: tuple[Path, ...] = ()
    should_stop: Callable[[], bool] = lambda: False
    seconds: float = _SECONDS

    @property
    def toolchain(self) -> str:
        return str(self.spec.toolchain)

    @property
    def engine(self) -> Path:
        return self.folder / "model.engine"

    @property
    def publishes(self) -> bool:
        return False

    @property
    def memory_bytes(self) -> int:
        return int(psutil.virtual_memory().total * _MEMORY_SHARE)


def run_offline(job: OfflineJob) -> Work:
    """What the steps made; the engine is at `job.engine`. Raises what they raise."""
    work = Work(graph=job.source)
    for step in _STEPS:
        work = step(job, work)
    return work
