"""Bytes as they are written, told a few times a second and with their rate."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Tell = Callable[[int, int, float], None]
"""Bytes done, bytes in all, bytes per second since the first."""

_SECONDS = 0.25


@dataclass(slots=True)
class Meter:
    """An `OnBytes`; every file that is written starts it anew. The last byte is always told."""

    tell: Tell
    seconds: float = _SECONDS
    _began: float = field(default_factory=time.monotonic)
    _told: float = 0.0
    _done: int = 0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < self._done:
            self._began, self._told = now, 0.0
        self._done = done
        if done < total and now - self._told < self.seconds:
            return
        self._told = now
        elapsed = now - self._began
        self.tell(done, total, done / elapsed if elapsed > 0 else 0.0)
