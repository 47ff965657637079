"""A doorbell rang: claim the build, run attempts of it, and see to its end."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from service import log
from service.builds.repository import REDIS_AWAY, BuildRepository, may_follow, record_from_facts, requeued, runs
from service.builds.types import Accepted, Attempt, BuildRecord, Cause, Finished, Status, now
from service.errors import AtollError, ChildCrashed, ChildStopped, ModelNotFound, Unavailable
from service.models.repository import ModelRepository
from service.settings import Settings
from service.store.types import ObjectStore
from worker.ending import cancelled, failed
from worker.journal import Journal
from worker.lease import Lease
from worker.pipeline import run_pipeline
from worker.scratch import scratch_folder
from worker.steps.context import Context

_log = log.get(__name__)


class _Way(Enum):
    """How an attempt left the runner."""

    ENDED = auto()
    CRASHED = auto()
    HANDED_BACK = auto()
    LEFT = auto()  # to the reconciler, or to the worker that has the build now


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the builds of one worker slot.

    `stopping` tells that the worker shuts down, `ring` tells other workers of a build; `memory_bytes` bounds a child.
    """

    settings: Settings
    store: ObjectStore
    builds: BuildRepository
    worker: str
    memory_bytes: int
    stopping: Callable[[], bool]
    ring: Callable[[BuildRecord], None]

    def run(self, build: str) -> None:
        """Do what the facts call for; a message that comes twice, late, or for nothing does no harm."""
        facts = self.builds.facts
        accepted = facts.accepted(build)
        if accepted is None:
            _log.warning("no such build", action="build.unknown", build=build)
            return
        finished = facts.finished(build) or facts.settle(build)
        if finished is not None:
            self.builds.close(build, finished)
            return
        token = f"{self.worker} {now().isoformat()}"
        if not self.builds.leases.take(build, token):
            _log.info("another worker has this build", action="build.held", build=build)
            return
        if self._hold(accepted, token) is _Way.HANDED_BACK:
            self._ring_again(build)

    def _hold(self, accepted: Accepted, token: str) -> _Way:
        """Attempts under one lease: a new one after each crash of a child, as long as the build has some left."""
        build, leases = accepted.id, self.builds.leases
        with Lease(leases, self.builds.facts, build, token, self.settings.heartbeat_seconds) as lease:
            known = runs(self.builds.facts.attempts(build))
            cause = self._first_cause(build, known)
            number = known[-1].n + 1 if known else 1
            while True:
                attempt = Attempt(n=number, worker=self.worker, started_at=now(), cause=cause)
                if not self.builds.facts.claim(build, attempt):
                    _log.info("the fence is taken", action="build.fenced", build=build, attempt=number)
                    return _Way.LEFT
                lease.guard(attempt)
                way = self._attempt(accepted, attempt, lease)
                if way is not _Way.CRASHED:
                    return way
                number, cause = number + 1, "child-crashed"

    def _first_cause(self, build: str, known: tuple[Attempt, ...]) -> Cause:
        if not known:
            return "accepted"
        return "handed-back" if self.builds.leases.was_handed_back(build, known[-1].n) else "worker-lost"

    def _attempt(self, accepted: Accepted, attempt: Attempt, lease: Lease) -> _Way:
        build = accepted.id
        record = record_from_facts(self.builds.facts, build)
        assert record is not None
        journal = Journal(self.builds.projection, record, attempt, self.settings.heartbeat_seconds)

        def should_stop() -> bool:
            journal.beat()
            return lease.lost or lease.cancelled or self.stopping()

        _log.info("started", action="build.started", build=build, attempt=attempt.n, cause=attempt.cause)
        try:
            finished = self._run(accepted, attempt, journal, should_stop)
        except ChildStopped:
            return self._stopped(build, attempt, journal, lease)
        except Unavailable as error:
            _log.warning("left for later", action="build.left", build=build, error=error.detail)
            return _Way.LEFT
        except ChildCrashed as error:
            _log.warning("crashed", action="build.crashed", build=build, attempt=attempt.n, error=error.detail)
            if may_follow(self.builds.facts.attempts(build), "child-crashed"):
                return _Way.CRASHED
            finished = failed(self.store, attempt, journal, error)
        except AtollError as error:
            finished = failed(self.store, attempt, journal, error)
        except Exception as error:  # a fault of ours ends this build with a problem, not the worker
            _log.exception("failed", action="build.error", build=build, attempt=attempt.n)
            finished = failed(self.store, attempt, journal, AtollError(f"{type(error).__name__}: {error}"))
        return self._end(build, finished)

    def _run(self, accepted: Accepted, attempt: Attempt, journal: Journal, should_stop: Callable[[], bool]) -> Finished:
        root = self.settings.scratch or self.settings.store / "tmp"
        model = ModelRepository(self.store).get(accepted.spec.model)
        if model is None:
            raise ModelNotFound(f"Model {accepted.spec.model} was deleted after the submission; upload it again.")
        with scratch_folder(root, accepted.id, attempt.n, self.builds.leases.held) as folder:
            context = Context(
                store=self.store,
                facts=self.builds.facts,
                accepted=accepted,
                attempt=attempt,
                model=model,
                folder=folder,
                journal=journal,
                should_stop=should_stop,
                seconds=self.settings.build_seconds,
                memory_bytes=self.memory_bytes,
            )
            return run_pipeline(context)

    def _stopped(self, build: str, attempt: Attempt, journal: Journal, lease: Lease) -> _Way:
        if lease.lost:
            return _Way.LEFT
        if lease.cancelled:
            return self._end(build, cancelled(self.store, attempt, journal))
        _log.info("handed back", action="build.handed-back", build=build, attempt=attempt.n)
        try:
            self.builds.leases.hand_back(build, attempt.n)
        except REDIS_AWAY:
            return _Way.LEFT  # it will count as a worker's death; ten of those are allowed
        return _Way.HANDED_BACK

    def _end(self, build: str, finished: Finished) -> _Way:
        facts = self.builds.facts
        succeeded = finished.status is Status.SUCCEEDED
        counted = facts.succeed(build, finished) if succeeded else facts.end(build, finished)
        if counted is None:
            _log.info("a newer attempt runs", action="build.fenced", build=build, attempt=finished.attempt)
            return _Way.LEFT
        self.builds.close(build, counted)
        _log.info("ended", action="build.ended", build=build, status=counted.status.value, attempt=counted.attempt)
        return _Way.ENDED

    def _ring_again(self, build: str) -> None:
        """Record first, message after; what fails here the reconciler does."""
        record = record_from_facts(self.builds.facts, build)
        assert record is not None
        try:
            self.ring(self.builds.projection.update(build, requeued, absent=record))
        except (*REDIS_AWAY, Unavailable) as error:
            _log.warning("left to the reconciler", action="build.ring-later", build=build, error=str(error))
