"""What a running attempt says of itself: its stage, its progress, its log. It is shown in Redis and kept in a blob."""

import time
from collections.abc import Mapping
from typing import Any

from service import log
from service.builds.repository import REDIS_AWAY, BuildProjection
from service.builds.types import Attempt, BuildRecord, Progress, Stage, StageTiming, Status, now

SHOW_SECONDS = 1.0
MAX_LINES = 20_000

_log = log.get(__name__)


class Journal:
    """Stages and lines of one attempt. While Redis is away nothing is shown, and the work goes on."""

    def __init__(self, projection: BuildProjection, record: BuildRecord, attempt: Attempt, beat_seconds: float) -> None:
        self._projection = projection
        self._record = record
        self._attempt = attempt
        self._beat_seconds = beat_seconds
        self._done: list[StageTiming] = []
        self._stage: Stage | None = None
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._last_sign = self._last_shown = time.monotonic()
        self._lines: list[str] = []
        self._dropped = 0

    @property
    def stages(self) -> tuple[StageTiming, ...]:
        """Those that ended, and the running one as far as it is."""
        if self._stage is None:
            return tuple(self._done)
        return (*self._done, StageTiming(name=self._stage, seconds=round(time.monotonic() - self._began, 3)))

    def begin(self, stage: Stage) -> None:
        self._done = list(self.stages)
        self._stage = stage
        self._began = self._last_sign = time.monotonic()
        self._progress = None
        self.note(f"--- {stage.value}")
        self._show()

    def note(self, text: str) -> None:
        """A line for the build's log."""
        if len(self._lines) >= MAX_LINES:
            self._dropped += 1
            return
        self._lines.append(f"{now().isoformat(timespec='milliseconds')} {' '.join(text.splitlines())}")

    def take(self, event: Mapping[str, Any]) -> None:
        """An event of a child process: a message for the log, or a step of its progress."""
        self._last_sign = time.monotonic()
        if event.get("event") == "message":
            self.note(f"{event['severity']}: {event['text']}")
        elif "phase" in event:
            self._progress = Progress(
                phase=str(event["phase"]),
                step=event.get("step"),
                of=event.get("of"),
                unit=event.get("unit"),
                rate=event.get("rate"),
            )
            if time.monotonic() - self._last_shown >= SHOW_SECONDS:
                self._show()

    def beat(self) -> None:
        """Called often: shows now and then how long ago the child gave a sign."""
        if time.monotonic() - self._last_shown >= self._beat_seconds:
            self._show()

    def text(self) -> str:
        dropped = [f"... {self._dropped} more lines were dropped"] if self._dropped else []
        return "\n".join([*self._lines, *dropped, ""])

    def _show(self) -> None:
        self._last_shown = time.monotonic()
        try:
            self._projection.update(self._record.id, self._running, absent=self._record)
        except REDIS_AWAY as error:
            _log.warning("redis is away", action="build.not-shown", build=self._record.id, error=str(error))

    def _running(self, record: BuildRecord) -> BuildRecord:
        return record.evolve(
            status=Status.RUNNING,
            stage=self._stage,
            attempt=self._attempt.n,
            worker=self._attempt.worker,
            started_at=self._attempt.started_at,
            stages=tuple(self._done),
            progress=self._signed(),
        )

    def _signed(self) -> Progress | None:
        if self._progress is None:
            return None
        return self._progress.model_copy(update={"last_sign_seconds": round(time.monotonic() - self._last_sign, 1)})
