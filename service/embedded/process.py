"""One supervised process: started in a group of its own, tied to the life of its parent, its output in a log file."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOG_BYTES = 16 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to run, how to see that it is ready, and how long (seconds) its start and its stop may take."""

    name: str
    argv: tuple[str, ...]
    log: Path
    ready: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    start_seconds: float = 60.0
    stop_seconds: float = 5.0


class Process:
    """A running (or ended) process of a spec. Start it from the main thread: the kernel ties it to the thread."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self.started_at = time.monotonic()
        _rotate(spec.log)
        with spec.log.open("ab") as log:
            self._popen = subprocess.Popen(
                spec.argv,
                env={**os.environ, **spec.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=spec.pass_fds,
                process_group=0,
                preexec_fn=tie_to(os.getpid()),
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def uptime(self) -> float:
        return time.monotonic() - self.started_at

    def ending(self) -> str | None:
        """How it ended (`exit code 1`, `SIGKILL`), None while it runs."""
        code = self._popen.poll()
        if code is None:
            return None
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def stop(self, *, at_once: bool = False) -> None:
        """Ask it to end, wait, then kill what is left of its group."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
            self._wait(0.5 if at_once else self.spec.stop_seconds)
        _kill_group(self.pid)
        self._popen.wait()

    def _wait(self, seconds: float) -> None:
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of a log file."""
    return " | ".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


def tie_to(parent: int) -> Callable[[], None]:
    """To run in the child before exec: SIGTERM when the parent dies, however and whenever it does."""

    def tie() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)

    return tie


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
