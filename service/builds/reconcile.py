"""The reconciler: makes sure that every accepted build ends, whatever was lost on the way.

Messages are doorbells, leases expire, processes die. Every few seconds one API process walks the `pending/` markers and
does for each build what its facts call for. All of it may be done twice without harm: fences decide.
"""

import threading
import uuid
from datetime import timedelta

import redis
from ulid import ULID

from service import log
from service.builds.dispatch import Dispatcher
from service.builds.facts import may_follow, runs
from service.builds.leases import Leases, Renewal
from service.builds.recovery import Recovery
from service.builds.repository import REDIS_AWAY, BuildRepository, queue_of, requeued
from service.builds.types import Attempt, Finished, Status, now
from service.errors import AtollError, Unavailable, WorkerLost
from service.settings import Settings

# A marker whose build was never accepted is left by a request that died; clocks of API processes may differ.
ABANDONED = timedelta(hours=1)
_LEADER = "reconciler"
_log = log.get(__name__)


class Reconciler:
    """A thread over `pending/`; of several processes the one that holds the lease `reconciler` does the work."""

    def __init__(
        self,
        settings: Settings,
        client: redis.Redis,
        builds: BuildRepository,
        recovery: Recovery,
        dispatcher: Dispatcher,
    ) -> None:
        self._seconds = settings.reconcile_seconds
        self._builds = builds
        self._recovery = recovery
        self._dispatcher = dispatcher
        self._leader = Leases(client, 2 * self._seconds)
        self._token = uuid.uuid4().hex
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def run_once(self) -> None:
        """One pass, if this process leads. Raises Unavailable or redis' errors; the next pass begins anew."""
        if self._leader.renew(_LEADER, self._token) is Renewal.LOST:
            return
        if not self._recovery.is_current():
            self._recovery.restore_pending()
        _Pass(self._builds, self._dispatcher, in_grace=self._recovery.in_grace()).run()
        if not self._recovery.is_indexed():
            self._recovery.reindex()

    def _run(self) -> None:
        while True:
            try:
                self.run_once()
            except (*REDIS_AWAY, Unavailable) as error:
                _log.warning("cannot reconcile now", action="reconcile.away", error=str(error))
            except Exception:  # a fault in one pass must not end all later ones; it is logged with its trace
                _log.exception("reconciling failed", action="reconcile.failed")
            if self._stop.wait(self._seconds):
                break
        self._resign()

    def _resign(self) -> None:
        try:
            self._leader.release(_LEADER, self._token)
        except REDIS_AWAY:
            _log.info("the reconciler's lease is left to expire", action="reconcile.stopped")


class _Pass:
    """One walk over the pending builds. A queue is read at most once, and only when a message may have been lost."""

    def __init__(self, builds: BuildRepository, dispatcher: Dispatcher, *, in_grace: bool) -> None:
        self._builds = builds
        self._facts = builds.facts
        self._dispatcher = dispatcher
        self._in_grace = in_grace
        self._queues: dict[str, set[str]] = {}

    def run(self) -> None:
        pending = sorted(self._facts.pending())
        held = self._builds.leases.held(pending)
        for build in pending:
            if build not in held:
                self._reconcile(build)

    def _reconcile(self, build: str) -> None:
        try:
            self._look_at(build)
        except AtollError as error:
            if isinstance(error, Unavailable):
                raise
            # One build's damaged facts must not keep the others waiting.
            _log.error("cannot reconcile", action="reconcile.build-failed", build=build, error=error.detail)

    def _look_at(self, build: str) -> None:
        if self._facts.accepted(build) is None:
            self._drop_if_abandoned(build)
            return
        finished = self._facts.finished(build) or self._facts.settle(build) or self._end_if_cancelled(build)
        if finished is not None:
            self._builds.close(build, finished)
            return
        attempts = runs(self._facts.attempts(build))
        if attempts and not self._handed_back(build, attempts):
            self._reclaim(build, attempts)
        else:
            self._ring_if_unheard(build, attempts)

    def _drop_if_abandoned(self, build: str) -> None:
        if now() - ULID.from_str(build).datetime > ABANDONED:
            self._facts.clear_pending(build)

    def _end_if_cancelled(self, build: str) -> Finished | None:
        if not self._facts.cancel_requested(build):
            return None
        attempts = runs(self._facts.attempts(build))
        attempt = attempts[-1].n if attempts else 0
        return self._facts.end(build, Finished(status=Status.CANCELLED, attempt=attempt, finished_at=now()))

    def _handed_back(self, build: str, attempts: tuple[Attempt, ...]) -> bool:
        return self._builds.leases.was_handed_back(build, attempts[-1].n)

    def _reclaim(self, build: str, attempts: tuple[Attempt, ...]) -> None:
        """The worker of the newest attempt is dead: its lease ran out."""
        if self._in_grace:
            return
        if may_follow(attempts, "worker-lost"):
            self._ring_if_unheard(build, attempts)
            return
        finished = self._facts.end(build, _worker_lost(attempts))
        if finished is not None:
            self._builds.close(build, finished)

    def _ring_if_unheard(self, build: str, attempts: tuple[Attempt, ...]) -> None:
        if self._dispatcher.rung_lately(build, attempts[-1].n if attempts else 0):
            return
        record = self._builds.restore(build)
        if record is None or build in self._waiting(queue_of(record)):
            return
        self._dispatcher.ring(self._builds.projection.update(build, requeued, absent=record))
        _log.info("rang again", action="build.rung-again", build=build, attempt=record.attempt)

    def _waiting(self, queue: str) -> set[str]:
        if queue not in self._queues:
            self._queues[queue] = self._dispatcher.waiting(queue)
        return self._queues[queue]


def _worker_lost(attempts: tuple[Attempt, ...]) -> Finished:
    workers = [attempt.worker for attempt in attempts]
    problem = WorkerLost(
        f"{len(attempts)} attempts ended because their worker died (the last on {workers[-1]}). Look at what ends the "
        "workers (memory, deploys), then submit again.",
        workers=workers,
        started=[attempt.started_at.isoformat() for attempt in attempts],
    ).problem()
    last = attempts[-1]
    return Finished(
        status=Status.FAILED,
        attempt=last.n,
        started_at=attempts[0].started_at,
        finished_at=now(),
        worker=last.worker,
        problem=problem,
    )
