"""The reconciler: whatever was lost, every accepted build is rung or ended."""

from collections.abc import Callable
from datetime import timedelta

import pytest
import redis
from ulid import ULID

from service import redis as redis_client
from service.builds.dispatch import Dispatcher
from service.builds.projection import BuildFilter, queue_of
from service.builds.reconcile import ABANDONED, Reconciler
from service.builds.record import new_record
from service.builds.recovery import Recovery
from service.builds.repository import BuildRepository
from service.builds.types import Accepted, Attempt, Cause, Finished, Status, now
from service.settings import Settings
from service.store.local import LocalStore

Accept = Callable[..., Accepted]


@pytest.fixture
def dispatcher(settings: Settings, client: redis.Redis) -> Dispatcher:
    return Dispatcher(settings, client)


@pytest.fixture
def recovery(client: redis.Redis, builds: BuildRepository) -> Recovery:
    return Recovery(client, builds, grace_seconds=0.001)


@pytest.fixture
def reconciler(
    settings: Settings, client: redis.Redis, builds: BuildRepository, recovery: Recovery, dispatcher: Dispatcher
) -> Reconciler:
    return Reconciler(settings, client, builds, recovery, dispatcher)


def claim(builds: BuildRepository, build: str, n: int = 1, cause: Cause = "accepted") -> None:
    builds.facts.claim(build, Attempt(n=n, worker=f"w{n}", started_at=now(), cause=cause))


def waiting(dispatcher: Dispatcher, accepted: Accepted) -> set[str]:
    return dispatcher.waiting(queue_of(new_record(accepted)))


def status(builds: BuildRepository, build: str) -> Status:
    found = builds.projection.get(build)
    assert found is not None
    return found.record.status


def test_a_build_whose_message_was_never_sent_is_rung(
    reconciler: Reconciler, dispatcher: Dispatcher, builds: BuildRepository, accept: Accept
) -> None:
    accepted = accept()
    reconciler.run_once()
    assert waiting(dispatcher, accepted) == {accepted.id}
    assert status(builds, accepted.id) is Status.QUEUED


def test_a_build_that_waits_in_its_queue_is_not_rung_again(
    reconciler: Reconciler, dispatcher: Dispatcher, accept: Accept, client: redis.Redis
) -> None:
    accepted = accept(priority=5)
    reconciler.run_once()
    client.delete(f"atoll:rung:{accepted.id}")
    reconciler.run_once()
    assert not dispatcher.rung_lately(accepted.id, 0)


def test_a_running_build_is_left_alone(
    reconciler: Reconciler, dispatcher: Dispatcher, builds: BuildRepository, accept: Accept
) -> None:
    accepted = accept()
    claim(builds, accepted.id)
    builds.leases.take(accepted.id, "w1")
    reconciler.run_once()
    assert waiting(dispatcher, accepted) == set()


def test_a_build_whose_worker_died_is_rung_for_another_attempt(
    reconciler: Reconciler, recovery: Recovery, dispatcher: Dispatcher, builds: BuildRepository, accept: Accept
) -> None:
    accepted = accept()
    claim(builds, accepted.id)
    recovery.restore_pending()
    while recovery.in_grace():
        pass
    reconciler.run_once()
    assert waiting(dispatcher, accepted) == {accepted.id}
    assert status(builds, accepted.id) is Status.QUEUED


def test_a_ring_that_was_heard_does_not_delay_the_next(
    reconciler: Reconciler, recovery: Recovery, dispatcher: Dispatcher, builds: BuildRepository, accept: Accept,
    client: redis.Redis,
) -> None:  # fmt: skip
    accepted = accept()
    reconciler.run_once()
    client.delete(queue_of(new_record(accepted)), *client.keys("build.*"))
    claim(builds, accepted.id)
    while recovery.in_grace():
        pass
    reconciler.run_once()
    assert waiting(dispatcher, accepted) == {accepted.id}


def test_after_a_flush_workers_get_time_to_renew_their_leases(
    settings: Settings, client: redis.Redis, builds: BuildRepository, dispatcher: Dispatcher, accept: Accept
) -> None:
    accepted = accept()
    claim(builds, accepted.id)
    patient = Recovery(client, builds, grace_seconds=60)
    Reconciler(settings, client, builds, patient, dispatcher).run_once()
    assert waiting(dispatcher, accepted) == set()
    assert status(builds, accepted.id) is Status.RUNNING


def test_a_build_that_ten_workers_died_of_has_failed(
    reconciler: Reconciler, recovery: Recovery, builds: BuildRepository, accept: Accept
) -> None:
    accepted = accept()
    for n in range(1, 11):
        claim(builds, accepted.id, n, "accepted" if n == 1 else "worker-lost")
    recovery.restore_pending()
    while recovery.in_grace():
        pass
    reconciler.run_once()
    finished = builds.facts.finished(accepted.id)
    assert finished is not None
    assert finished.problem is not None
    assert finished.problem.slug == "worker-lost"
    assert "w10" in finished.problem.detail
    assert status(builds, accepted.id) is Status.FAILED
    assert list(builds.facts.pending()) == []


def test_a_finished_build_is_taken_off_the_list_and_frees_its_key(
    reconciler: Reconciler, builds: BuildRepository, accept: Accept
) -> None:
    accepted = accept()
    builds.flights.restore(accepted.key, accepted.id)
    builds.facts.succeed(accepted.id, Finished(status=Status.SUCCEEDED, attempt=1, finished_at=now()))
    reconciler.run_once()
    assert list(builds.facts.pending()) == []
    assert builds.flights.current(accepted.key) is None
    assert status(builds, accepted.id) is Status.SUCCEEDED


def test_a_cancel_that_no_worker_saw_ends_the_build(
    reconciler: Reconciler, builds: BuildRepository, accept: Accept
) -> None:
    accepted = accept()
    builds.facts.request_cancel(accepted.id)
    reconciler.run_once()
    assert status(builds, accepted.id) is Status.CANCELLED


@pytest.mark.parametrize(("age", "kept"), [(timedelta(0), True), (ABANDONED * 2, False)])
def test_a_marker_without_a_build_is_dropped_once_its_request_must_be_dead(
    reconciler: Reconciler, builds: BuildRepository, store: LocalStore, age: timedelta, kept: bool
) -> None:
    build = str(ULID.from_datetime(now() - age))
    store.put(f"pending/{build}", b"")
    reconciler.run_once()
    assert (build in set(builds.facts.pending())) is kept


def test_damaged_facts_of_one_build_do_not_hold_up_the_others(
    reconciler: Reconciler, dispatcher: Dispatcher, store: LocalStore, accept: Accept
) -> None:
    bad = str(ULID.from_datetime(now() - timedelta(days=1)))
    store.put(f"pending/{bad}", b"")
    store.put(f"builds/{bad}/accepted", b"not json")
    good = accept()
    reconciler.run_once()
    assert waiting(dispatcher, good) == {good.id}


def test_of_two_reconcilers_one_leads(
    reconciler: Reconciler,
    settings: Settings,
    client: redis.Redis,
    builds: BuildRepository,
    recovery: Recovery,
    dispatcher: Dispatcher,
    accept: Accept,
) -> None:
    reconciler.run_once()
    accepted = accept()
    Reconciler(settings, client, builds, recovery, dispatcher).run_once()
    assert waiting(dispatcher, accepted) == set()


def test_after_a_flush_everything_is_there_again(
    reconciler: Reconciler, builds: BuildRepository, client: redis.Redis, dispatcher: Dispatcher, accept: Accept
) -> None:
    queued, running, done = accept(), accept(arch="sm_86"), accept(submitter="someone")
    claim(builds, running.id)
    builds.leases.take(running.id, "w1")
    builds.facts.succeed(done.id, Finished(status=Status.SUCCEEDED, attempt=1, finished_at=now()))
    reconciler.run_once()
    before = builds.projection.list(BuildFilter(), 10).items
    client.flushall()
    builds.leases.renew(running.id, "w1")
    reconciler.run_once()
    assert builds.projection.list(BuildFilter(), 10).items == before
    assert {record.id for record in before} == {queued.id, running.id, done.id}
    assert builds.flights.current(queued.key) == queued.id
    assert waiting(dispatcher, queued) == {queued.id}


def test_the_thread_outlives_a_redis_that_is_away(settings: Settings, dispatcher: Dispatcher) -> None:
    nowhere = settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    away = redis_client.connect(nowhere)
    broken = BuildRepository.over(nowhere, LocalStore(settings.store), away)
    reconciler = Reconciler(nowhere, away, broken, Recovery(away, broken, 1), dispatcher)
    reconciler.start()
    assert reconciler._thread is not None
    assert reconciler._thread.is_alive()
    reconciler.stop()
