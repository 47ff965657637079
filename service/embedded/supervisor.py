"""Keeps processes running: each starts when the one before is ready, and again when it dies. The last stops first."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from service.embedded.process import Process, ProcessSpec, tail
from service.errors import CommandError

_POLL_SECONDS = 0.1
_LONGEST_BACKOFF = 30.0
_STABLE_SECONDS = 60.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Set by SIGINT, SIGTERM or SIGHUP; a second one asks to stop at once, without grace."""

    def __init__(self) -> None:
        self._count = 0
        self._event = threading.Event()

    @property
    def urgent(self) -> bool:
        return self._count > 1

    def __bool__(self) -> bool:
        return self._count > 0

    def wait(self, seconds: float) -> bool:
        """Sleep; True as soon as a stop was asked for."""
        return self._event.wait(seconds)

    @contextmanager
    def listening(self) -> Iterator[None]:
        previous = {number: signal.signal(number, self._on_signal) for number in _STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 the signature of a handler
        self._count += 1
        self._event.set()


@dataclass(slots=True)
class _Slot:
    """A spec, the process that runs for it now, and when a dead one is started again."""

    spec: ProcessSpec
    process: Process | None = None
    deaths: int = 0
    restart_at: float | None = None


class Supervisor:
    """Runs the processes of `specs` until a stop signal comes. `say` gets one line for each thing that happens."""

    def __init__(self, specs: Sequence[ProcessSpec], say: Callable[[str], None]) -> None:
        self._slots = [_Slot(spec) for spec in specs]
        self._say = say
        self._stop = StopRequest()

    def run(self, on_ready: Callable[[], None]) -> None:
        """Start all, call `on_ready`, watch until a signal comes, stop all. Must run in the main thread.

        Raises CommandError, with nothing left running, if a process does not get ready.
        """
        with self._stop.listening():
            try:
                self._start_all()
                if not self._stop:
                    on_ready()
                while not self._stop.wait(_POLL_SECONDS):
                    self._watch()
            finally:
                self._stop_all()

    def _start_all(self) -> None:
        for slot in self._slots:
            slot.process = Process(slot.spec)
            self._wait_until_ready(slot.spec, slot.process)

    def _wait_until_ready(self, spec: ProcessSpec, process: Process) -> None:
        while not self._stop and not spec.ready():
            ending = process.ending()
            if ending is not None:
                raise CommandError(f"{spec.name} did not start ({ending}). Its log {spec.log} ends: {tail(spec.log)}")
            if process.uptime > spec.start_seconds:
                raise CommandError(f"{spec.name} was not ready after {spec.start_seconds:g} s; see its log {spec.log}")
            self._stop.wait(_POLL_SECONDS)

    def _watch(self) -> None:
        for slot in self._slots:
            if slot.process is None:
                self._restart_when_due(slot)
            elif (ending := slot.process.ending()) is not None:
                self._schedule_restart(slot, slot.process, ending)

    def _schedule_restart(self, slot: _Slot, process: Process, ending: str) -> None:
        slot.deaths = 1 if process.uptime > _STABLE_SECONDS else slot.deaths + 1
        delay = min(0.25 * 2**slot.deaths, _LONGEST_BACKOFF)
        process.stop()
        slot.process, slot.restart_at = None, time.monotonic() + delay
        self._say(f"{slot.spec.name} ended ({ending}); starting it again in {delay:g} s (log: {slot.spec.log})")

    def _restart_when_due(self, slot: _Slot) -> None:
        if slot.restart_at is None or time.monotonic() < slot.restart_at:
            return
        slot.process, slot.restart_at = Process(slot.spec), None
        self._say(f"{slot.spec.name} started again (pid {slot.process.pid})")

    def _stop_all(self) -> None:
        for slot in reversed(self._slots):
            if slot.process is not None:
                slot.process.stop(at_once=self._stop.urgent)
                slot.process = None
