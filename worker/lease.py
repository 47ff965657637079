"""A worker's hold on a build: beaten from a thread while the work goes on, and watched for loss and for a cancel."""

import threading
import time
from types import TracebackType
from typing import Self

from service import log
from service.builds.repository import REDIS_AWAY, BuildFacts, Leases, Renewal
from service.builds.types import Attempt

# A running build's process has to be gone within 2 s of a cancel.
WATCH_SECONDS = 0.5

_log = log.get(__name__)


class Lease:
    """A lease that was taken. Used as a context; leaving it stops the beat and gives the lease up.

    `lost`: another worker holds the build, or a newer attempt exists; what this one makes may not end the build.
    While Redis is away nobody can take the build over, so the lease counts as held.
    """

    def __init__(self, leases: Leases, facts: BuildFacts, build: str, token: str, beat_seconds: float) -> None:
        self._leases = leases
        self._facts = facts
        self._build = build
        self._token = token
        self._beat_seconds = beat_seconds
        self._attempt: Attempt | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"lease {build}", daemon=True)
        self.lost = False
        self.cancelled = False

    def __enter__(self) -> Self:
        self.cancelled = self._facts.cancel_requested(self._build)
        self._thread.start()
        return self

    def guard(self, attempt: Attempt) -> None:
        """From now on the lease is for `attempt`: a newer one, of whomever, loses it."""
        self._attempt = attempt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        try:
            self._leases.release(self._build, self._token)
        except REDIS_AWAY:
            _log.info("the lease is left to expire", action="lease.left", build=self._build)

    def _watch(self) -> None:
        next_beat = time.monotonic() + self._beat_seconds
        while not self._end.wait(min(WATCH_SECONDS, self._beat_seconds)) and not self.lost:
            try:
                self.cancelled = self.cancelled or self._leases.cancel_requested(self._build)
                if time.monotonic() >= next_beat:
                    next_beat = time.monotonic() + self._beat_seconds
                    self._beat()
            except REDIS_AWAY as error:
                _log.warning("redis is away", action="lease.not-beaten", build=self._build, error=str(error))
            except Exception:  # a lease that is no longer beaten is a lost one: stop the work
                _log.exception("the lease cannot be kept", action="lease.failed", build=self._build)
                self.lost = True

    def _beat(self) -> None:
        # The flag in Redis is quick; the fact is what a flush cannot take away.
        self.cancelled = self.cancelled or self._facts.cancel_requested(self._build)
        renewal = self._leases.renew(self._build, self._token)
        if renewal is Renewal.LOST or (renewal is Renewal.RESTORED and not self._is_newest()):
            _log.warning("another worker has this build", action="lease.lost", build=self._build)
            self.lost = True

    def _is_newest(self) -> bool:
        mine = self._attempt
        return mine is None or all(attempt.n <= mine.n for attempt in self._facts.attempts(self._build))
