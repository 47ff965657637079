"""Stops a run of ONNX Runtime that takes longer, or more memory, than it may."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from worker.verify.types import Unverifiable

_TICK_SECONDS = 0.1


class Watchdog:
    """One budget for all runs of a verification: seconds from now on, and resident bytes of this process."""

    def __init__(self, seconds: float, memory_bytes: int) -> None:
        self._seconds, self._memory_bytes = seconds, memory_bytes
        self._end = time.monotonic() + seconds
        self._process = psutil.Process()
        self._stopped: str | None = None

    @contextmanager
    def guard(self, options: Any) -> Iterator[None]:
        """While inside, `options.terminate` is set once the budget is spent."""
        self.raise_if_stopped()
        done = threading.Event()
        thread = threading.Thread(target=self._watch, args=(options, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        self.raise_if_stopped()

    def raise_if_stopped(self) -> None:
        if self._stopped is not None:
            raise Unverifiable(self._stopped)

    def _watch(self, options: Any, done: threading.Event) -> None:
        while not done.wait(_TICK_SECONDS):
            self._stopped = self._spent()
            if self._stopped is not None:
                options.terminate = True
                return

    def _spent(self) -> str | None:
        if time.monotonic() > self._end:
            return f"verification did not finish within {self._seconds:g} s"
        used = self._process.memory_info().rss
        if used > self._memory_bytes:
            return f"verification used {used >> 20} MiB of memory; {self._memory_bytes >> 20} MiB are allowed"
        return None
