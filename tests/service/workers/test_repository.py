"""Workers: live while they beat, remembered after."""

import time

import pytest
import redis

from service.builds.types import now
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer, WorkerInfo

OFFER = ToolchainOffer(toolchain="tensorrt-rtx", version="1.7", archs=("portable",), platform="linux-x86_64")


@pytest.fixture
def workers(client: redis.Redis) -> WorkerRepository:
    return WorkerRepository(client)


def info(name: str) -> WorkerInfo:
    return WorkerInfo(
        name=name, host="h", pid=1, offers=(OFFER,), converter_version="1", memory_bytes=1, started_at=now()
    )


def test_a_worker_is_live_until_it_withdraws(workers: WorkerRepository) -> None:
    for name in ("b", "a"):
        workers.announce(info(name), 600)
    assert [worker.name for worker in workers.live()] == ["a", "b"]
    workers.withdraw("a")
    assert [worker.name for worker in workers.live()] == ["b"]


def test_a_worker_that_does_not_beat_is_live_no_more_but_remembered(workers: WorkerRepository) -> None:
    workers.announce(info("a"), 0.02)
    while workers.live():
        time.sleep(0.01)
    assert [worker.name for worker in workers.seen()] == ["a"]


def test_a_beat_after_a_flush_restores_the_announcement(workers: WorkerRepository, client: redis.Redis) -> None:
    workers.announce(info("a"), 600)
    client.flushall()
    assert workers.live() == ()
    workers.announce(info("a"), 600)
    assert [worker.name for worker in workers.live()] == ["a"]


def test_an_announcement_of_another_version_does_not_count(workers: WorkerRepository, client: redis.Redis) -> None:
    workers.announce(info("a"), 600)
    workers.announce(info("b"), 600)
    client.set("atoll:worker:a", '{"name": "a", "of": "another version"}')
    assert [worker.name for worker in workers.live()] == ["b"]
