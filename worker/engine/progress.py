"""What the builder does now, told a few times a second at most: the build itself must not feel that it is watched."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

INTERVAL_SECONDS = 0.25

Emit = Callable[[dict[str, Any]], None]


class ProgressReporter:
    """Notes each step and leaves the telling to a thread, so that the last step before a long silence is told too."""

    def __init__(self, emit: Emit, interval: float = INTERVAL_SECONDS) -> None:
        self._emit = emit
        self._interval = interval
        self._steps: dict[str, int] = {}
        self._now: tuple[str, int] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="progress", daemon=True)

    def started(self, phase: str, steps: int) -> None:
        self._steps[phase] = steps
        self._now = (phase, 0)

    def completed(self, phase: str, step: int) -> None:
        self._now = (phase, step + 1)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _tell(self) -> None:
        told = None
        ended = False
        while not ended:
            ended = self._ended.wait(self._interval)
            now = self._now
            if now is not None and now != told:
                phase, step = now
                self._emit({"event": "progress", "phase": phase, "step": step, "of": self._steps.get(phase)})
            told = now
