"""Builds, as the API offers them: submit, look, list, cancel."""

import re
from dataclasses import dataclass, replace

import redis

from service import log
from service.builds.dispatch import Dispatcher
from service.builds.reconcile import Reconciler
from service.builds.recovery import Recovery
from service.builds.repository import (
    REDIS_AWAY,
    BuildFilter,
    BuildRepository,
    Page,
    Versioned,
    record_from_facts,
    runs,
)
from service.builds.submission import Admission, Submission
from service.builds.types import BuildRecord, BuildSpec, Finished, Group, Status, now
from service.errors import BuildNotFound, Conflict, GroupNotFound
from service.models.service import ModelService
from service.samples.service import SampleService
from service.settings import Settings
from service.store.types import ObjectStore
from service.workers.repository import WorkerRepository

_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group and the records of its builds, in the order of the archs that were asked for."""

    group: Group
    builds: tuple[BuildRecord, ...]

    @property
    def status(self) -> Status:
        """One status over all: it ends when the last build has ended, and as badly as the worst."""
        found = {build.status for build in self.builds}
        if Status.RUNNING in found or (Status.QUEUED in found and len(found) > 1):
            return Status.RUNNING
        order = (Status.QUEUED, Status.FAILED, Status.CANCELLED)
        return next((status for status in order if status in found), Status.SUCCEEDED)


class BuildService:
    """`start` begins to reconcile in a thread, which also computes the projection again where Redis lost it."""

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        redis: redis.Redis,
        models: ModelService,
        workers: WorkerRepository,
    ) -> None:
        self._builds = BuildRepository.over(settings, store, redis)
        self._dispatcher = Dispatcher(settings, redis)
        self._recovery = Recovery(redis, self._builds, settings.lease_seconds)
        self._reconciler = Reconciler(settings, redis, self._builds, self._recovery, self._dispatcher)
        self._admission = Admission(
            store, redis, self._builds, self._recovery, self._dispatcher, models, SampleService(store), workers
        )

    def start(self) -> None:
        self._reconciler.start()

    def stop(self) -> None:
        self._reconciler.stop()

    def reindex(self) -> int:
        """Compute the whole projection again from the store; how many builds there are."""
        self._recovery.restore_pending()
        return self._recovery.reindex()

    def submit(
        self,
        spec: BuildSpec,
        *,
        archs: tuple[str, ...] = (),
        submitter: str = "anonymous",
        idempotency_key: str | None = None,
        fingerprint: str = "",
    ) -> Submission:
        """Answer with an engine that is there, a build in flight, or a new build; for several `archs` with a group.

        `fingerprint` identifies the request that `idempotency_key` came with. Raises NoWorker, InvalidOptions,
        MissingProfile, ModelNotFound, Conflict, IdempotencyKeyReused, and redis' errors with nothing stored.
        """
        submission = self._admission.submit(
            spec, archs=archs, submitter=submitter, idempotency_key=idempotency_key, fingerprint=fingerprint
        )
        return replace(submission, records=self._with_positions(submission.records))

    def get(self, build: str) -> Versioned:
        """The record and its revision; while Redis is away, what the store tells. Raises BuildNotFound."""
        _check_id(build)
        try:
            shown = self._builds.projection.get(build)
            if shown is None and self._builds.restore(build) is not None:
                shown = self._builds.projection.get(build)
        except REDIS_AWAY as error:
            _log.warning("redis is away", action="build.read-from-store", build=build, error=str(error))
            record = record_from_facts(self._builds.facts, build)
            shown = Versioned(record, "") if record else None
        if shown is None:
            raise _not_found(build)
        [record] = self._with_positions((shown.record,))
        return Versioned(record, shown.rev)

    def rev(self, build: str) -> str | None:
        """The revision alone, for those who wait for it to change."""
        return self._builds.projection.rev(build)

    def list(self, wanted: BuildFilter, limit: int, cursor: str | None = None) -> Page[BuildRecord]:
        """Newest first."""
        page = self._builds.projection.list(wanted, limit, cursor)
        return Page(self._with_positions(page.items), page.next)

    def get_many(self, builds: tuple[str, ...]) -> tuple[BuildRecord, ...]:
        """The records of those that exist, in the given order."""
        shown = {record.id: record for record in self._builds.projection.get_many(builds)}
        found = (shown.get(build) or self._builds.restore(build) for build in builds if _ID.fullmatch(build))
        return self._with_positions(tuple(record for record in found if record is not None))

    def result(self, build: str) -> Finished | None:
        """The end of a build and the blobs that it left; None while it has none. Raises BuildNotFound."""
        _check_id(build)
        if self._builds.facts.accepted(build) is None:
            raise _not_found(build)
        return self._builds.facts.finished(build)

    def group(self, group: str) -> GroupState:
        """Raises GroupNotFound."""
        found = self._builds.facts.group(group) if _ID.fullmatch(group) else None
        if found is None:
            raise GroupNotFound(f"There is no group {group[:64]!r}; see the answer that made it.")
        return GroupState(found, tuple(self.get(build).record for build in found.builds))

    def cancel(self, build: str, *, force: bool = False) -> BuildRecord:
        """Ask for the end of a build; again has no further effect. Raises BuildNotFound, and Conflict for a build that
        has ended otherwise or that others submitted too (unless `force`)."""
        record = self.get(build).record
        if record.status is Status.CANCELLED:
            return record
        self._check_cancellable(record, force)
        self._builds.leases.request_cancel(build)  # first: while Redis is away nothing is stored
        self._builds.facts.request_cancel(build)
        if not self._builds.leases.held([build]):
            self._end_waiting(build)
        return self.get(build).record

    def _check_cancellable(self, record: BuildRecord, force: bool) -> None:
        if record.status.terminal:
            raise Conflict(f"Build {record.id} has already {record.status.value}; there is nothing to cancel.")
        others = {joined.submitter for joined in self._builds.facts.joined(record.id)} - {record.submitter}
        if others and not force:
            raise Conflict(
                f"Build {record.id} was also submitted by {', '.join(sorted(others))}; cancel with `?force=true`."
            )

    def _end_waiting(self, build: str) -> None:
        """No worker has it: it ends here, unless one claims it at this moment, which then sees the request."""
        attempts = runs(self._builds.facts.attempts(build))
        attempt = attempts[-1].n if attempts else 0
        finished = self._builds.facts.end(build, Finished(status=Status.CANCELLED, attempt=attempt, finished_at=now()))
        if finished is not None:
            self._builds.close(build, finished)

    def _with_positions(self, records: tuple[BuildRecord, ...]) -> tuple[BuildRecord, ...]:
        try:
            positions = self._builds.projection.positions(records)
        except REDIS_AWAY:
            return records  # read from the store; a position is live information and stays unknown
        return tuple(record.evolve(queue_position=positions.get(record.id)) for record in records)


def _check_id(build: str) -> None:
    if not _ID.fullmatch(build):
        raise _not_found(build)


def _not_found(build: str) -> BuildNotFound:
    return BuildNotFound(f"There is no build {build[:64]!r}; GET /builds lists those that there are.")
