"""What surrounds an attempt: its lease, its journal, its scratch folder, its worker's beat."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from service.builds.repository import BuildRepository, new_record
from service.builds.types import Accepted, Attempt, BuildSpec, Stage, Status, now
from service.settings import Settings
from service.store.local import LocalStore
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer
from worker.announce import Announcer, worker_info
from worker.journal import Journal
from worker.lease import Lease
from worker.scratch import scratch_folder

Until = Callable[[Callable[[], Any]], Any]
OFFER = ToolchainOffer(toolchain="tensorrt-rtx", version="1.7", archs=("portable",), platform="linux-x86_64")


@pytest.fixture
def builds(settings: Settings, store: LocalStore, client: redis.Redis) -> BuildRepository:
    return BuildRepository.over(settings, store, client)


@pytest.fixture
def lease(builds: BuildRepository) -> Lease:
    assert builds.leases.take("b", "mine")
    return Lease(builds.leases, builds.facts, "b", "mine", beat_seconds=0.05)


def attempt(n: int) -> Attempt:
    return Attempt(n=n, worker="w", started_at=now())


def accepted() -> Accepted:
    spec = BuildSpec(model="a" * 64, arch="portable", toolchain="tensorrt-rtx", toolchain_version="1.7")
    return Accepted(id="b", key="k", spec=spec, submitter="me", platform="linux-x86_64", created_at=now())


def test_a_lease_outlives_its_first_life_and_ends_with_the_work(
    lease: Lease, builds: BuildRepository, client: redis.Redis, until: Until
) -> None:
    client.pexpire("atoll:lease:b", 200)
    with lease:
        until(lambda: int(client.pttl("atoll:lease:b")) > 1000)
        assert not lease.lost
    assert builds.leases.held(["b"]) == set()


def test_a_lease_that_another_worker_took_is_lost(
    lease: Lease, builds: BuildRepository, client: redis.Redis, until: Until
) -> None:
    with lease:
        client.set("atoll:lease:b", "other")
        until(lambda: lease.lost)
    assert builds.leases.held(["b"]) == {"b"}


@pytest.mark.parametrize(("newest", "lost"), [(1, False), (2, True)])
def test_a_flushed_lease_is_restored_unless_a_newer_attempt_exists(
    lease: Lease, builds: BuildRepository, client: redis.Redis, until: Until, newest: int, lost: bool
) -> None:
    for n in range(1, newest + 1):
        builds.facts.claim("b", attempt(n))
    with lease:
        lease.guard(attempt(1))
        client.flushall()
        until(lambda: lease.lost or builds.leases.held(["b"]))
        until(lambda: lease.lost is lost)


@pytest.mark.parametrize("before", [True, False])
def test_a_cancel_is_seen_before_and_during_the_work(
    lease: Lease, builds: BuildRepository, until: Until, before: bool
) -> None:
    if before:
        builds.facts.request_cancel("b")
    with lease:
        assert lease.cancelled is before
        builds.leases.request_cancel("b")
        until(lambda: lease.cancelled)


def test_a_journal_shows_stages_and_progress_and_keeps_the_log(builds: BuildRepository) -> None:
    journal = Journal(builds.projection, new_record(accepted()), attempt(2), beat_seconds=0)
    journal.begin(Stage.FETCHING)
    journal.begin(Stage.BUILDING)
    journal.take({"event": "message", "severity": "warning", "text": "two\nlines"})
    journal.take({"event": "progress", "phase": "timing", "step": 3, "of": 9})
    journal.beat()
    found = builds.projection.get("b")
    assert found is not None
    record = found.record
    assert (record.status, record.stage, record.attempt, record.worker) == (Status.RUNNING, Stage.BUILDING, 2, "w")
    assert [timing.name for timing in record.stages] == [Stage.FETCHING]
    assert record.progress is not None
    assert (record.progress.phase, record.progress.step, record.progress.of) == ("timing", 3, 9)
    assert record.progress.last_sign_seconds is not None
    assert [line.partition(" ")[2] for line in journal.text().splitlines()] == [
        "--- fetching",
        "--- building",
        "warning: two lines",
    ]


def test_a_log_that_grows_without_end_says_what_it_dropped(
    builds: BuildRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.journal.MAX_LINES", 2)
    journal = Journal(builds.projection, new_record(accepted()), attempt(1), beat_seconds=60)
    for number in range(5):
        journal.note(str(number))
    assert journal.text().splitlines()[-1] == "... 3 more lines were dropped"


def test_a_scratch_folder_goes_with_its_attempt_and_takes_dead_ones_along(tmp_path: Path) -> None:
    for name in ("build-dead.1.x", "build-alive.1.x", "build-mine.1.x", "other"):
        (tmp_path / name).mkdir()

    def held(builds: Sequence[str]) -> set[str]:
        return {"alive", "mine"} & set(builds)

    with scratch_folder(tmp_path, "mine", 2, held) as folder:
        (folder / "file").write_text("x")
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["build-alive.1.x", "other", folder.name])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["build-alive.1.x", "other"]


def test_a_worker_is_announced_again_after_a_flush_and_withdraws_at_the_end(
    client: redis.Redis, workers: WorkerRepository, until: Until
) -> None:
    info = worker_info((OFFER,))
    announcer = Announcer(workers, info, beat_seconds=0.05, life_seconds=60, current_build=lambda: "b")
    announcer.start()
    assert until(workers.live)[0].current_build == "b"
    client.flushall()
    assert until(workers.live)[0].name == info.name
    announcer.join()
    assert workers.live() == ()
