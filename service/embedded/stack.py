"""`atoll up`: Valkey, the API and one worker over one data directory, as the supervisor is to run them."""

import json
import socket
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.request import ProxyHandler, build_opener

from service.embedded.directory import DataDirectory
from service.embedded.listen import url_of
from service.embedded.process import ProcessSpec
from service.embedded.valkey import EmbeddedValkey

ATOLL = (sys.executable, "-P", "-m", "service.cli")
"""This installation's `atoll`; a folder `service` in the working directory does not stand in for it (-P)."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The parts of one embedded service. All inherit `lock_fd`, so that leftovers keep the directory locked."""

    directory: DataDirectory
    listener: socket.socket
    lock_fd: int
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def url(self) -> str:
        return url_of(self.listener)

    def specs(self) -> tuple[ProcessSpec, ...]:
        """In order of start: Valkey, API, worker."""
        valkey = EmbeddedValkey.plan(self.directory.valkey)
        env = {"ATOLL_REDIS_URL": valkey.url, "ATOLL_STORE": str(self.directory.store)}
        return (valkey.spec(self.directory.logs / "valkey.log", (self.lock_fd,)), self._api(env), self._worker(env))

    def _api(self, env: dict[str, str]) -> ProcessSpec:
        fd = self.listener.fileno()
        return ProcessSpec(
            name="api",
            argv=(*ATOLL, "api", "--fd", str(fd)),
            log=self.directory.logs / "api.log",
            ready=partial(_answers, f"{self.url}/healthz"),
            env=env,
            pass_fds=(fd, self.lock_fd),
            stop_seconds=8.0,
        )

    def _worker(self, env: dict[str, str]) -> ProcessSpec:
        return ProcessSpec(
            name="worker",
            argv=(*ATOLL, "worker"),
            log=self.directory.logs / "worker.log",
            ready=partial(_announced, f"{self.url}/workers", self.created_at),
            env=env,
            pass_fds=(self.lock_fd,),
            start_seconds=120.0,
            stop_seconds=12.0,
        )


def _answers(url: str) -> bool:
    return _get(url) is not None


def _announced(url: str, since: datetime) -> bool:
    """True when a worker that started after `since` announces itself: one of an earlier run may still be listed."""
    workers = _get(url) or {}
    return any(datetime.fromisoformat(worker["started_at"]) >= since for worker in workers.get("items", ()))


def _get(url: str) -> dict[str, Any] | None:
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=5.0) as response:
            body = json.load(response)
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) else None
