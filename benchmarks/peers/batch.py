"""Jobs that may crash or hang the process that does them: a child does one after another, and is replaced when it dies.

Standard library only: the child's half runs in environments that have nothing of ours.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

_STARTUP_SECONDS = 300.0
_DYING_SECONDS = 60.0
_TAIL_BYTES = 2000
_LONGEST_ERROR = 300
_READY = "ready"

Arguments = Mapping[str, Any]
Handle = Callable[..., Mapping[str, Any] | None]


class BatchBroken(Exception):  # noqa: N818 -- says what is so, not what a user did wrong
    """The child does not even start; the message is the last line that it wrote."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: its result, or an error (an exception's type and text, a signal, the time limit).

    `seconds` is the time inside the handler, start of the process and imports left out; `cpu_seconds` what its
    process computed meanwhile, which other work on the machine does not change (0 where it died).
    """

    name: str
    seconds: float
    cpu_seconds: float = 0.0
    error: str = ""
    result: Mapping[str, Any] | None = None


def run_batch(command: Sequence[str], jobs: Mapping[str, Arguments], limit: float) -> Iterator[Outcome]:
    """Each job's outcome, in order. `command` starts a process that calls `serve`; `limit`: seconds a job may take.

    Raises BatchBroken.
    """
    child: _Child | None = None
    try:
        for name, arguments in jobs.items():
            child = child or _Child(command)
            outcome = child.ask(name, arguments, limit)
            yield outcome
            if child.ended:
                child.close()
                child = None
    finally:
        if child is not None:
            child.close()


def serve(handle: Handle) -> None:
    """The child's side: answer each line of stdin. What the handler prints goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _answer(answers, {"state": _READY})
    for line in sys.stdin:
        started, computed = time.perf_counter(), time.process_time()
        answer: dict[str, Any] = {}
        try:
            answer["result"] = handle(**json.loads(line))
        except (Exception, SystemExit) as error:  # a converter may raise anything: that is the finding
            answer["error"] = _text(error)
        answer |= {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - computed}
        _answer(answers, answer)


def _answer(stream: IO[str], value: Mapping[str, Any]) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()


def _text(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:_LONGEST_ERROR]


class _Child:
    """A running `serve`, whose answers a thread reads, so that waiting for one has an end."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the child
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8"
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.ended = False
        self._await_start()

    def _await_start(self) -> None:
        try:
            if self._next(_STARTUP_SECONDS) is not None:
                return
            reason = self._last_words()
        except queue.Empty:
            reason = f"not ready within {_STARTUP_SECONDS:g} s"
        self.close()
        raise BatchBroken(reason)

    def ask(self, name: str, arguments: Arguments, limit: float) -> Outcome:
        assert self._process.stdin is not None
        started = time.perf_counter()
        try:
            self._process.stdin.write(json.dumps(arguments) + "\n")
            self._process.stdin.flush()
            answer = self._next(limit)
        except queue.Empty:
            return self._lost(name, started, f"no answer within {limit:g} s")
        except BrokenPipeError:
            answer = None
        if answer is None:
            return self._lost(name, started, self._death())
        return Outcome(name, **answer)

    def _lost(self, name: str, started: float, error: str) -> Outcome:
        self.ended = True
        return Outcome(name, time.perf_counter() - started, error=error)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self, limit: float) -> dict[str, Any] | None:
        """The next answer; None when there will be none. Raises queue.Empty when it takes too long."""
        line = self._lines.get(timeout=limit)
        answer: dict[str, Any] | None = None if line is None else json.loads(line)
        return answer

    def _death(self) -> str:
        """How the process ended, which takes a while where its core is dumped."""
        try:
            code = self._process.wait(timeout=_DYING_SECONDS)
        except subprocess.TimeoutExpired:
            return "answers no more"
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"exit code {code}: {self._last_words()}"

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it wrote nothing"
