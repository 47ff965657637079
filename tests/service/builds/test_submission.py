"""Submitting: an answer that is there, a build in flight, or a new one; once, whatever happens."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import redis

from service.builds.repository import BuildRepository
from service.builds.service import BuildService
from service.builds.types import BuildRecord, BuildSpec, EngineRef, Finished, Status, now
from service.engines.types import EngineManifest
from service.errors import (
    BuildNotFound,
    Conflict,
    GroupNotFound,
    IdempotencyKeyReused,
    InvalidOptions,
    InvalidSample,
    MissingProfile,
    ModelNotFound,
    NoWorker,
)
from service.settings import Settings
from service.store.local import LocalStore
from service.workers.repository import WorkerRepository
from service.workers.types import WorkerInfo

PROFILE = {"x": {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}}


@pytest.fixture
def spec(model: str) -> Callable[..., BuildSpec]:
    return lambda **fields: BuildSpec.model_validate({"model": model, "profiles": [PROFILE], **fields})


def succeed(builds: BuildRepository, record: BuildRecord, manifest: EngineManifest) -> None:
    """What a worker leaves: the engine, the answer to the key, the end."""
    builds.facts.put_answer(record.key, manifest.digest)
    reference = EngineRef(digest=manifest.digest, size=manifest.size, url=f"/engines/{manifest.digest}")
    done = Finished(
        status=Status.SUCCEEDED,
        attempt=1,
        started_at=record.created_at,
        finished_at=now(),
        result={"engine": manifest.digest},
        engine=reference,
    )
    builds.close(record.id, builds.facts.succeed(record.id, done))


def test_a_new_build_is_durable_shown_and_rung(service: BuildService, builds: BuildRepository, spec: Any) -> None:
    submission = service.submit(spec(labels={"team": "audio"}), submitter="me")
    [record] = submission.records
    assert (submission.new, submission.answered) == (1, False)
    assert (record.status, record.spec.arch, record.spec.toolchain) == (Status.QUEUED, "portable", "tensorrt-rtx")
    assert list(builds.facts.pending()) == [record.id]
    accepted = builds.facts.accepted(record.id)
    assert accepted is not None
    assert (accepted.key, accepted.submitter, accepted.spec) == (record.key, "me", record.spec)
    assert service.get(record.id).record.queue_position == 0
    assert service._dispatcher.waiting("build.tensorrt-rtx.1.7.1.116.portable") == {record.id}


def test_many_equal_requests_at_once_make_one_build(service: BuildService, builds: BuildRepository, spec: Any) -> None:
    barrier = Barrier(16)

    def submit(number: int) -> str:
        barrier.wait()
        return service.submit(spec(labels={f"n{number}": "x"})).records[0].id

    with ThreadPoolExecutor(16) as pool:
        ids = set(pool.map(submit, range(16)))
    assert len(ids) == 1
    assert list(builds.facts.builds()) == list(ids)
    assert len(service.get(ids.pop()).record.spec.labels) == 16


def test_what_a_later_request_adds_survives_a_flush(service: BuildService, spec: Any, client: redis.Redis) -> None:
    first = service.submit(spec(labels={"a": "1"})).records[0]
    service.submit(spec(labels={"a": "2", "b": "3"}))
    client.flushall()
    assert service.get(first.id).record.spec.labels == {"a": "1", "b": "3"}


def test_a_webhook_is_refused_since_nothing_would_call_it(service: BuildService, spec: Any) -> None:
    with pytest.raises(InvalidOptions, match="webhook"):
        service.submit(spec(webhook="https://example.com/hook"))


def test_after_a_flush_the_build_in_flight_is_still_joined(
    service: BuildService, spec: Any, client: redis.Redis, workers: WorkerRepository, announced: WorkerInfo
) -> None:
    first = service.submit(spec()).records[0]
    client.flushall()
    workers.announce(announced, 600)
    again = service.submit(spec())
    assert (again.new, again.records[0].id) == (0, first.id)


def test_an_engine_that_is_there_is_the_answer(
    service: BuildService, builds: BuildRepository, spec: Any, publish: Any, client: redis.Redis,
    workers: WorkerRepository, announced: WorkerInfo,
) -> None:  # fmt: skip
    first = service.submit(spec()).records[0]
    succeed(builds, first, publish())
    for lose in (lambda: None, client.flushall):
        lose()
        workers.announce(announced, 600)
        service.reindex()
        again = service.submit(spec())
        assert (again.answered, again.new) == (True, 0)
        assert again.records[0].id == first.id
        assert again.records[0].engine is not None


def test_an_engine_that_was_deleted_is_built_again(
    service: BuildService, builds: BuildRepository, store: LocalStore, spec: Any, publish: Any
) -> None:
    first = service.submit(spec()).records[0]
    manifest = publish()
    succeed(builds, first, manifest)
    store.delete(f"engines/{manifest.digest}")
    again = service.submit(spec())
    assert again.new == 1
    assert builds.facts.answer(first.key) is None


def test_a_failed_build_does_not_answer_a_new_request(
    service: BuildService, builds: BuildRepository, spec: Any
) -> None:
    first = service.submit(spec()).records[0]
    builds.facts.end(first.id, Finished(status=Status.FAILED, attempt=0, finished_at=now()))
    assert service.submit(spec()).records[0].id != first.id


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"model": "f" * 64}, ModelNotFound),
        ({"profiles": []}, MissingProfile),
        ({"preset": "nope"}, InvalidOptions),
        ({"arch": "sm_90"}, NoWorker),
        ({"toolchain_version": "9"}, NoWorker),
        ({"accuracy": {"samples": ["a" * 64]}}, InvalidSample),
    ],
)
def test_a_refused_request_stores_nothing(
    service: BuildService, builds: BuildRepository, spec: Any, fields: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        service.submit(spec(**fields), idempotency_key="k", fingerprint="f")
    assert list(builds.facts.builds()) == []
    assert list(builds.facts.pending()) == []
    assert service.submit(spec(), idempotency_key="k", fingerprint="other").new == 1


def test_a_graph_alone_needs_no_profile(service: BuildService, spec: Any) -> None:
    assert service.submit(spec(profiles=[], output="onnx")).new == 1


def test_while_redis_is_away_nothing_is_stored(
    service: BuildService, settings: Settings, builds: BuildRepository, spec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spec()
    nowhere = redis.Redis(port=1, decode_responses=True, retry=None)
    away = BuildService(
        settings, service._admission._store, nowhere, service._admission._models, WorkerRepository(nowhere)
    )
    with pytest.raises(redis.ConnectionError):
        away.submit(wanted)
    assert list(builds.facts.builds()) == []


def test_a_record_can_be_read_while_redis_is_away(service: BuildService, settings: Settings, spec: Any) -> None:
    record = service.submit(spec()).records[0]
    nowhere = redis.Redis(port=1, decode_responses=True, retry=None)
    away = BuildService(
        settings, service._admission._store, nowhere, service._admission._models, WorkerRepository(nowhere)
    )
    assert away.get(record.id).record.key == record.key


def test_one_idempotency_key_makes_one_build(service: BuildService, spec: Any, client: redis.Redis) -> None:
    first = service.submit(spec(), idempotency_key="k", fingerprint="f")
    assert service.submit(spec(), idempotency_key="k", fingerprint="f").records == first.records
    with pytest.raises(IdempotencyKeyReused):
        service.submit(spec(mode="full"), idempotency_key="k", fingerprint="g")
    client.flushall()
    service.reindex()
    assert service.submit(spec(), idempotency_key="k", fingerprint="f").records[0].id == first.records[0].id


def test_several_archs_make_a_group(service: BuildService, builds: BuildRepository, spec: Any, publish: Any) -> None:
    alone = service.submit(spec(arch="sm_86")).records[0]
    submission = service.submit(spec(), archs=("sm_89", "sm_86", "portable"))
    assert submission.group is not None
    assert submission.new == 2
    assert submission.records[1].id == alone.id
    group = service.group(submission.group.id)
    assert [build.spec.arch for build in group.builds] == ["sm_89", "sm_86", "portable"]
    assert group.status is Status.QUEUED
    succeed(builds, alone, publish())
    assert service.group(submission.group.id).status is Status.RUNNING
    for record in (submission.records[0], submission.records[2]):
        service.cancel(record.id)
    assert service.group(submission.group.id).status is Status.CANCELLED


def test_a_group_with_one_bad_arch_stores_nothing(service: BuildService, builds: BuildRepository, spec: Any) -> None:
    with pytest.raises(NoWorker):
        service.submit(spec(), archs=("portable", "sm_90"))
    assert list(builds.facts.builds()) == []


def test_the_expected_time_comes_from_builds_alike(
    service: BuildService, builds: BuildRepository, spec: Any, publish: Any
) -> None:
    first = service.submit(spec()).records[0]
    assert first.expected_seconds is None
    succeed(builds, first, publish())
    assert service.submit(spec(mode="full")).records[0].expected_seconds is not None
    assert service.submit(spec(arch="sm_86")).records[0].expected_seconds is None


def test_a_waiting_build_is_cancelled_at_once_and_only_once(
    service: BuildService, builds: BuildRepository, spec: Any
) -> None:
    record = service.submit(spec()).records[0]
    assert service.cancel(record.id).status is Status.CANCELLED
    assert service.cancel(record.id).status is Status.CANCELLED
    assert builds.flights.current(record.key) is None


def test_what_others_submitted_too_is_cancelled_only_by_force(service: BuildService, spec: Any) -> None:
    record = service.submit(spec(), submitter="me").records[0]
    service.submit(spec(), submitter="you")
    with pytest.raises(Conflict, match="you"):
        service.cancel(record.id)
    assert service.cancel(record.id, force=True).status is Status.CANCELLED


def test_a_finished_build_cannot_be_cancelled(
    service: BuildService, builds: BuildRepository, spec: Any, publish: Any
) -> None:
    record = service.submit(spec()).records[0]
    succeed(builds, record, publish())
    with pytest.raises(Conflict):
        service.cancel(record.id)


@pytest.mark.parametrize("build", ["nope", "0" * 26, "../../etc/passwd", "", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
def test_what_is_no_build_is_not_found(service: BuildService, build: str) -> None:
    with pytest.raises(BuildNotFound):
        service.get(build)
    with pytest.raises(BuildNotFound):
        service.cancel(build)
    with pytest.raises(GroupNotFound):
        service.group(build)


def test_what_a_search_depends_on_is_in_the_key(service: BuildService, spec: Any) -> None:
    wishes = [
        {"mode": "rope"},
        {"mode": "auto"},
        {"mode": "auto", "accuracy": {"target_cosine": 0.99}},
        {"mode": "auto", "profiles": [{"x": {"min": [1, 4], "opt": [4, 4], "max": [8, 4]}}]},
    ]
    keys = {service.submit(spec(**wish), submitter="me").records[0].key for wish in wishes}
    assert len(keys) == len(wishes)
