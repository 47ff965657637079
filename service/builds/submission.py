"""What happens to a request for a build: resolve, look for an answer, board a flight, or accept and ring."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import redis
from ulid import ULID

from service import log
from service.builds.dispatch import Dispatcher
from service.builds.flights import Flight, Flushed
from service.builds.idempotency import Answer, Idempotency
from service.builds.presets import preset
from service.builds.profiles import resolve_profiles
from service.builds.record import new_record, record_from_facts, with_joined
from service.builds.recovery import Recovery
from service.builds.repository import REDIS_AWAY, BuildFilter, BuildRepository
from service.builds.targets import Target, resolve_target
from service.builds.types import Accepted, BuildRecord, BuildSpec, Group, Joined, Status, now
from service.engines.repository import EngineRepository
from service.errors import InvalidOptions, Unavailable
from service.models.service import ModelService
from service.samples.service import SampleService
from service.store.types import ObjectStore
from service.workers.repository import WorkerRepository

_log = log.get(__name__)
_SIMILAR = 5


@dataclass(frozen=True, slots=True)
class Submission:
    """The answer to a request: one record, or those of a group. `new`: how many builds it started."""

    records: tuple[BuildRecord, ...]
    group: Group | None = None
    new: int = 0

    @property
    def answered(self) -> bool:
        """Whether everything that was asked for is already built."""
        return all(record.status is Status.SUCCEEDED for record in self.records)


@dataclass(frozen=True, slots=True)
class _Request:
    submitter: str
    group: str | None
    idempotency_key: str | None
    fingerprint: str


class Admission:
    """The path of `POST /builds`. Nothing is stored before every part of the request was found to be good."""

    def __init__(
        self,
        store: ObjectStore,
        client: redis.Redis,
        builds: BuildRepository,
        recovery: Recovery,
        dispatcher: Dispatcher,
        models: ModelService,
        samples: SampleService,
        workers: WorkerRepository,
    ) -> None:
        self._store = store
        self._builds = builds
        self._recovery = recovery
        self._dispatcher = dispatcher
        self._models = models
        self._samples = samples
        self._workers = workers
        self._engines = EngineRepository(store)
        self._idempotency = Idempotency(client)

    def submit(
        self,
        spec: BuildSpec,
        *,
        archs: tuple[str, ...],
        submitter: str,
        idempotency_key: str | None,
        fingerprint: str,
    ) -> Submission:
        request = _Request(submitter, str(ULID()) if archs else None, idempotency_key, fingerprint)
        if idempotency_key is None:
            return self._submit(spec, archs, request)
        answer = self._idempotency.begin(submitter, idempotency_key, fingerprint)
        if answer is not None:
            return self._replay(answer)
        try:
            submission = self._submit(spec, archs, request)
        except BaseException:
            with contextlib.suppress(*REDIS_AWAY):  # it expires by itself
                self._idempotency.forget(submitter, idempotency_key)
            raise
        self._remember(request, submission)
        return submission

    def _submit(self, spec: BuildSpec, archs: tuple[str, ...], request: _Request) -> Submission:
        specs = [spec.model_copy(update={"arch": arch}) for arch in archs] or [spec]
        targets = self._resolve(specs)
        found = [self._find_or_start(target, request) for target in targets]
        records = tuple(record for record, _ in found)
        new = sum(started for _, started in found)
        if request.group is None:
            return Submission(records, new=new)
        return Submission(records, self._put_group(request.group, records, request.submitter), new)

    def _resolve(self, specs: Sequence[BuildSpec]) -> list[Target]:
        live, seen = self._workers.live(), self._workers.seen()
        targets = [resolve_target(self._with_profiles(spec), live, seen) for spec in specs]
        return list({target.key: target for target in targets}.values())

    def _with_profiles(self, spec: BuildSpec) -> BuildSpec:
        inputs = self._models.get(spec.model).scan.inputs
        if spec.webhook is not None:
            raise InvalidOptions("This version sends no webhooks: leave `webhook` out, and watch the build instead.")
        if spec.accuracy.samples:
            self._samples.check(spec.accuracy.samples, inputs)
        ranges = preset(spec.preset) if spec.preset else None
        if spec.output == "onnx" and not spec.profiles and ranges is None:
            return spec  # nothing is built, so no shapes are needed
        return spec.model_copy(update={"profiles": resolve_profiles(inputs, spec.profiles, ranges)})

    def _find_or_start(self, target: Target, request: _Request) -> tuple[BuildRecord, bool]:
        built = self._built(target)
        if built is not None:
            return built, False
        build = ULID()
        flight = self._board(target.key, str(build))
        if not flight.mine:
            return self._join(flight.build, target.spec, request), False
        try:
            built = self._built(target)  # the flight before may have landed since the first look
            if built is None:
                return self._start(build, target, request), True
        except BaseException:
            with contextlib.suppress(*REDIS_AWAY):  # the claim expires by itself
                self._builds.flights.land(target.key, str(build))
            raise
        self._builds.flights.land(target.key, str(build))
        return built, False

    def _board(self, key: str, build: str) -> Flight:
        while True:
            try:
                return self._builds.flights.board(key, build)
            except Flushed:
                self._recovery.restore_pending()

    def _built(self, target: Target) -> BuildRecord | None:
        """A build that succeeded and whose result is still there."""
        digest = self._builds.facts.answer(target.key)
        if digest is None:
            return None
        record = self._builder_of(target.key, digest) if self._is_there(target.spec, digest) else None
        if record is None:
            self._builds.facts.forget_answer(target.key)
        return record

    def _is_there(self, spec: BuildSpec, digest: str) -> bool:
        described = spec.output == "onnx" or self._engines.get(digest) is not None
        return described and self._store.blob(digest) is not None

    def _builder_of(self, key: str, digest: str) -> BuildRecord | None:
        page = self._builds.projection.list(BuildFilter(key=key, status=(Status.SUCCEEDED,)), 1)
        if page.items:
            return page.items[0]
        manifest = self._engines.get(digest)
        record = record_from_facts(self._builds.facts, manifest.build) if manifest else None
        return self._builds.projection.put(record) if record and record.status is Status.SUCCEEDED else None

    def _join(self, build: str, spec: BuildSpec, request: _Request) -> BuildRecord:
        joined = Joined(submitter=request.submitter, labels=spec.labels, webhook=spec.webhook)
        record = self._builds.restore(build)
        assert record is not None  # a flight is boarded only when its build was accepted
        known = Joined(submitter=record.submitter, labels=record.spec.labels, webhook=record.spec.webhook)
        if joined == known:
            return record
        self._builds.facts.join(build, joined)
        return self._builds.projection.update(build, lambda shown: with_joined(shown, joined), absent=record)

    def _start(self, build: ULID, target: Target, request: _Request) -> BuildRecord:
        accepted = Accepted(
            id=str(build),
            key=target.key,
            spec=target.spec,
            submitter=request.submitter,
            idempotency_key=request.idempotency_key,
            idempotency_fingerprint=request.fingerprint if request.idempotency_key else None,
            group=request.group,
            platform=target.platform,
            created_at=build.datetime,
        )
        record = new_record(accepted).evolve(expected_seconds=self._expected_seconds(target.spec))
        self._builds.facts.accept(accepted)
        self._announce(record)
        _log.info("accepted", action="build.accepted", build=record.id, key=record.key, arch=target.spec.arch)
        return record

    def _announce(self, record: BuildRecord) -> None:
        """Record first, message after. The build is durable: what fails here the reconciler does."""
        try:
            self._builds.flights.confirm(record.key, record.id)
            self._builds.projection.put(record)
            self._dispatcher.ring(record)
        except (*REDIS_AWAY, Unavailable) as error:
            _log.warning("left to the reconciler", action="build.ring-later", build=record.id, error=str(error))

    def _expected_seconds(self, spec: BuildSpec) -> float | None:
        """The median of the newest builds of the same model, arch and toolchain; None when there are none."""
        wanted = BuildFilter(status=(Status.SUCCEEDED,), model=spec.model, arch=spec.arch)
        seconds = [
            (record.finished_at - record.started_at).total_seconds()
            for record in self._builds.projection.list(wanted, _SIMILAR).items
            if record.finished_at and record.started_at and record.spec.toolchain == spec.toolchain
        ]
        return round(median(seconds), 1) if seconds else None

    def _put_group(self, group: str, records: tuple[BuildRecord, ...], submitter: str) -> Group:
        builds = tuple(record.id for record in records)
        made = Group(id=group, builds=builds, submitter=submitter, created_at=now())
        self._builds.facts.put_group(made)
        self._builds.projection.add_to_group(group, builds)
        return made

    def _replay(self, answer: Answer) -> Submission:
        group = self._builds.facts.group(answer.group) if answer.group else None
        builds = group.builds if group else (answer.build,) if answer.build else ()
        restored = (self._builds.restore(build) for build in builds)
        return Submission(tuple(record for record in restored if record is not None), group)

    def _remember(self, request: _Request, submission: Submission) -> None:
        assert request.idempotency_key is not None
        group = submission.group
        answer = Answer(group=group.id) if group else Answer(build=submission.records[0].id)
        try:
            self._idempotency.remember(request.submitter, request.idempotency_key, request.fingerprint, answer)
        except REDIS_AWAY as error:
            _log.warning("redis is away", action="idempotency.not-remembered", error=str(error))
