"""Leases: one owner, on the server's clock."""

import threading
import time

import pytest
import redis

from service.builds.leases import Leases, Renewal


def test_of_many_claimers_one_gets_the_lease(client: redis.Redis) -> None:
    leases = Leases(client, 20)
    barrier = threading.Barrier(16)
    won: list[list[str]] = []
    for number in range(20):
        winners: list[str] = []

        def claim(token: str, build: str = f"b{number}", winners: list[str] = winners) -> None:
            barrier.wait()
            if leases.take(build, token):
                winners.append(token)

        threads = [threading.Thread(target=claim, args=(f"t{index}",)) for index in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won.append(winners)
    assert [len(winners) for winners in won] == [1] * 20


def test_only_the_holder_renews_and_releases(client: redis.Redis) -> None:
    leases = Leases(client, 20)
    leases.take("b", "mine")
    assert leases.renew("b", "other") is Renewal.LOST
    leases.release("b", "other")
    assert leases.renew("b", "mine") is Renewal.HELD
    leases.release("b", "mine")
    assert leases.held(["b"]) == set()


def test_a_lease_that_was_flushed_is_restored_by_a_beat(client: redis.Redis) -> None:
    leases = Leases(client, 20)
    leases.take("b", "mine")
    client.flushall()
    assert leases.renew("b", "mine") is Renewal.RESTORED
    assert leases.held(["a", "b"]) == {"b"}


def test_a_lease_without_a_beat_expires(client: redis.Redis) -> None:
    leases = Leases(client, 0.05)
    leases.take("b", "mine")
    while leases.held(["b"]):
        time.sleep(0.01)
    assert leases.take("b", "other")
    assert leases.renew("b", "mine") is Renewal.LOST


@pytest.mark.parametrize(("attempt", "known"), [(2, True), (1, False)])
def test_a_hand_back_is_of_one_attempt(client: redis.Redis, attempt: int, known: bool) -> None:
    leases = Leases(client, 20)
    leases.hand_back("b", 2)
    assert leases.was_handed_back("b", attempt) is known
