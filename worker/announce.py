"""How a worker makes itself known: a beat in Redis from its parent process, however busy its child is."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from service import log
from service.builds.repository import REDIS_AWAY
from service.builds.types import now
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer, WorkerInfo
from worker.version import CONVERTER_VERSION

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_log = log.get(__name__)


class Announcer:
    """Announces `info` every `beat_seconds`; each announcement lives for `life_seconds`. Withdraws at the end.

    An announcement is whole, so one after a flush or restart of Redis restores what was lost.
    """

    def __init__(
        self,
        workers: WorkerRepository,
        info: WorkerInfo,
        *,
        beat_seconds: float,
        life_seconds: float,
        current_build: Callable[[], str | None],
    ) -> None:
        self._workers = workers
        self._info = info
        self._beat_seconds = beat_seconds
        self._life_seconds = life_seconds
        self._current_build = current_build
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="announcer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Withdraw soon. Only sets a flag, so a signal handler may call it."""
        self._end.set()

    def join(self) -> None:
        """Wait until it has withdrawn, if it ever started."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            self._try(self._announce)
            self._end.wait(self._beat_seconds)
        self._try(lambda: self._workers.withdraw(self._info.name))

    def _announce(self) -> None:
        info = self._info.model_copy(update={"current_build": self._current_build()})
        self._workers.announce(info, self._life_seconds)

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except REDIS_AWAY as error:
            _log.warning("redis is away", action="worker.not-announced", worker=self._info.name, error=str(error))


def worker_info(offers: tuple[ToolchainOffer, ...]) -> WorkerInfo:
    """This process as a worker. Its name is unique among hosts and processes."""
    host = socket.gethostname()
    return WorkerInfo(
        name=f"{host}-{os.getpid()}",
        host=host,
        pid=os.getpid(),
        offers=offers,
        converter_version=CONVERTER_VERSION,
        memory_bytes=memory_of_host(),
        started_at=now(),
    )


def memory_of_host() -> int:
    """What processes here may use together, in bytes: the machine's memory, or the container's limit."""
    total = int(psutil.virtual_memory().total)
    try:
        limit = _CGROUP_LIMIT.read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
