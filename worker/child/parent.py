"""The worker's side: run a module in a process group of its own, read what it says, and end it in every case."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from service import log
from service.errors import ChildCrashed, Problem, ProblemError, ResourceLimit
from worker.child.confine import environment_without_secrets
from worker.child.limits import Limit, memory_limit, stop_limit, time_limit

TICK_SECONDS = 0.05
# Between SIGTERM and SIGKILL; a stopped child has to be gone within 2 s.
GRACE_SECONDS = 1.0
READ_BYTES = 1 << 16
MAX_MESSAGE_BYTES = 64 << 20
MAX_EVIDENCE_BYTES = 16 << 10
MAX_EVIDENCE_LINES = 40

OnEvent = Callable[[Mapping[str, Any]], None]

_log = log.get(__name__)


def ignore(event: Mapping[str, Any]) -> None:
    """Takes an event and does nothing."""


def never() -> bool:
    """The work is never asked to stop."""
    return False


def run_child(
    module: str,
    request: Mapping[str, Any],
    *,
    on_event: OnEvent = ignore,
    timeout: float,
    should_stop: Callable[[], bool] = never,
    memory_bytes: int | None = None,
) -> dict[str, Any]:
    """Run `python -m module` (a module that calls `serve`) on a JSON request and return its answer.

    `timeout` is in seconds. `memory_bytes` bounds the resident memory of the child and its descendants (it is watched;
    a limit on address space would break CUDA). `should_stop` is asked about every 50 ms. Whatever happens, also when
    `on_event` raises, no process of the child's group is left.

    Raises ProblemError (the child said what is wrong), ChildCrashed, ChildTimeout, ChildStopped, ResourceLimit.
    """
    child = _Child(module, request, on_event)
    limits = [stop_limit(module, should_stop), time_limit(module, timeout)]
    if memory_bytes is not None:
        limits.append(memory_limit(module, child.pid, memory_bytes))
    try:
        child.watch(limits)
    finally:
        child.end()
    return child.answer()


class _Child:
    """A running child: its process group, the private pipe, and the last lines that it printed."""

    def __init__(self, module: str, request: Mapping[str, Any], on_event: OnEvent) -> None:
        self._module = module
        self._on_event = on_event
        self._messages = bytearray()
        self._printed: deque[bytes] = deque()
        self._answer: Mapping[str, Any] | None = None
        self._reply_fd, writing_end = os.pipe()
        try:
            self._process = self._spawn(request, writing_end)
        except BaseException:
            os.close(self._reply_fd)
            raise
        finally:
            os.close(writing_end)
        self.pid = self._process.pid
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reply_fd, selectors.EVENT_READ, self._take_messages)
        self._selector.register(self._output_fd, selectors.EVENT_READ, self._take_printed)

    def _spawn(self, request: Mapping[str, Any], writing_end: int) -> subprocess.Popen[bytes]:
        # A file, not a pipe, as stdin: a child that does not read cannot block its parent.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(json.dumps(request).encode())
            stdin.seek(0)
            return subprocess.Popen(
                [sys.executable, "-P", "-m", self._module, str(writing_end), str(os.getpid())],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(writing_end,),
                env=environment_without_secrets(os.environ),
                start_new_session=True,
            )

    @property
    def _output_fd(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def watch(self, limits: Sequence[Limit]) -> None:
        """Read until the child has answered or ended, or until a limit is passed, whose error is then raised."""
        while self._answer is None and not self._has_ended():
            self._read(TICK_SECONDS)
            self._enforce(limits)
        self._signal_group(signal.SIGKILL)
        self._drain()

    def _enforce(self, limits: Sequence[Limit]) -> None:
        for limit in limits:
            error = limit() if self._answer is None else None
            if error is not None:
                _log.info("child.stopped", child=self._module, reason=error.slug, printed=self._evidence())
                raise error

    def _has_ended(self) -> bool:
        # WNOWAIT leaves it unreaped: until `end`, no other process can get its number, which is also its group's.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _read(self, seconds: float) -> bool:
        """Read once from each pipe that has something; True when one had."""
        if not self._selector.get_map():
            time.sleep(seconds)
            return False
        ready = self._selector.select(seconds)
        for key, _ in ready:
            data = os.read(key.fd, READ_BYTES)
            if data:
                key.data(data)
            else:
                self._selector.unregister(key.fd)
        return bool(ready)

    def _drain(self) -> None:
        while self._read(0):
            pass

    def _take_printed(self, data: bytes) -> None:
        self._printed.append(data)
        while sum(map(len, self._printed)) > MAX_EVIDENCE_BYTES + READ_BYTES:
            self._printed.popleft()

    def _take_messages(self, data: bytes) -> None:
        self._messages += data
        *lines, rest = self._messages.split(b"\n") if b"\n" in data else [self._messages]
        self._messages = rest
        if len(rest) > MAX_MESSAGE_BYTES:
            raise ResourceLimit(f"{self._module} sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB.")
        for line in lines:
            self._take_message(line)

    def _take_message(self, line: bytearray) -> None:
        try:
            message = json.loads(line)
        except ValueError as error:
            raise ChildCrashed(f"{self._module} sent a message that is not JSON: {error}.") from error
        if "event" in message:
            self._on_event(message["event"])
            return
        self._answer = message

    def end(self) -> None:
        """Leave nothing: no process of the group, no open descriptor."""
        self._signal_group(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._signal_group(signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        os.close(self._reply_fd)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def answer(self) -> dict[str, Any]:
        """The result. Raises ProblemError or ChildCrashed, and logs what the child printed then."""
        if self._answer is not None and "result" in self._answer:
            return dict(self._answer["result"])
        evidence, code = self._evidence(), self._process.returncode
        if self._answer is None:
            _log.warning("child.crashed", child=self._module, exit=code, printed=evidence)
            raise _crash(self._module, code, evidence)
        problem = Problem.model_validate(self._answer["problem"])
        _log.info("child.refused", child=self._module, problem=problem.slug, printed=evidence)
        raise ProblemError(problem)

    def _evidence(self) -> list[str]:
        text = b"".join(self._printed)[-MAX_EVIDENCE_BYTES:].decode(errors="replace")
        return text.splitlines()[-MAX_EVIDENCE_LINES:]


def _crash(module: str, code: int, printed: list[str]) -> ChildCrashed:
    """What is known of a child that ended without an answer. A negative exit code is the number of a signal."""
    if code >= 0:
        how, name = f"ended with exit code {code} and gave no answer", None
    else:
        name = signal.Signals(-code).name
        how = f"was killed by {name}"
    if name == "SIGKILL":
        how += ", probably because the machine ran out of memory; use a worker with more memory"
    return ChildCrashed(
        f"{module} {how}. Its last lines are in `printed`.", module=module, exit_code=code, signal=name, printed=printed
    )
