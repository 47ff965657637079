"""Single flight: a key has one build in flight, whoever asks and whoever dies."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from ulid import ULID

from service.builds import flights as flights_module
from service.builds.flights import EPOCH_KEY, Flushed
from service.builds.repository import BuildRepository
from service.builds.types import Accepted, Finished, Status, now

Accept = Callable[..., Accepted]


@pytest.fixture(autouse=True)
def _current(client: redis.Redis) -> None:
    client.set(EPOCH_KEY, "this server")


def test_of_many_requests_at_once_one_flies_and_all_get_it(builds: BuildRepository, accept: Accept) -> None:
    barrier = threading.Barrier(16)
    key = "k" * 64

    def request(_: int) -> str:
        barrier.wait()
        flight = builds.flights.board(key, str(ULID()))
        if flight.mine:
            builds.facts.accept(accept().model_copy(update={"id": flight.build, "key": key}))
            builds.flights.confirm(key, flight.build)
        return flight.build

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(request, range(16)))) == 1


def test_a_flight_ends_with_its_build(builds: BuildRepository, accept: Accept) -> None:
    flying = accept()
    assert builds.flights.board(flying.key, flying.id).mine
    builds.flights.confirm(flying.key, flying.id)
    assert builds.flights.board(flying.key, "next").build == flying.id
    builds.facts.end(flying.id, Finished(status=Status.FAILED, attempt=0, finished_at=now()))
    assert builds.flights.board(flying.key, "next").mine


def test_landing_frees_only_ones_own_key(builds: BuildRepository) -> None:
    builds.flights.board("k", "mine")
    builds.flights.land("k", "other")
    assert builds.flights.current("k") == "mine"
    builds.flights.land("k", "mine")
    assert builds.flights.current("k") is None


def test_a_claimer_that_died_blocks_nobody_for_long(builds: BuildRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights_module, "CLAIM_SECONDS", 0.1)
    builds.flights.board("k", "dead")
    assert builds.flights.board("k", "next").mine


def test_after_a_flush_nobody_boards_before_the_projection_is_current(
    builds: BuildRepository, client: redis.Redis
) -> None:
    client.flushall()
    with pytest.raises(Flushed):
        builds.flights.board("k", "mine")


def test_a_confirmed_flight_does_not_expire(
    builds: BuildRepository, accept: Accept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights_module, "CLAIM_SECONDS", 0.05)
    flying = accept()
    builds.flights.board(flying.key, flying.id)
    builds.flights.confirm(flying.key, flying.id)
    time.sleep(0.1)
    assert not builds.flights.board(flying.key, "next").mine
