"""Records in Redis: updates that never go back, lists newest first under any filter."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis

from service.builds.projection import BuildFilter, queue_of
from service.builds.record import new_record
from service.builds.repository import BuildProjection, BuildRepository
from service.builds.types import Accepted, BuildRecord, Stage, Status, Trunk

Accept = Callable[..., Accepted]


@pytest.fixture
def projection(builds: BuildRepository) -> BuildProjection:
    return builds.projection


@pytest.fixture
def put(projection: BuildProjection, accept: Accept) -> Callable[..., BuildRecord]:
    def put(status: Status = Status.QUEUED, **spec: Any) -> BuildRecord:
        return projection.put(new_record(accept(**spec)).evolve(status=status))

    return put


def shown(projection: BuildProjection, build: str) -> BuildRecord:
    found = projection.get(build)
    assert found is not None
    return found.record


def test_a_revision_moves_with_every_change_and_only_then(projection: BuildProjection, put: Any) -> None:
    record = put()
    revisions = {projection.rev(record.id)}
    for stage in (Stage.FETCHING, Stage.CONVERTING, Stage.CONVERTING):
        projection.update(record.id, lambda shown, stage=stage: shown.evolve(stage=stage), absent=record)
        revisions.add(projection.rev(record.id))
    assert len(revisions) == 3


def test_revisions_are_not_reused_after_a_flush(projection: BuildProjection, put: Any, client: Any) -> None:
    record = put()
    before = int(projection.rev(record.id) or 0)
    client.flushall()
    projection.put(record)
    assert int(projection.rev(record.id) or 0) > before


def test_a_terminal_record_stays(projection: BuildProjection, put: Any) -> None:
    record = put(Status.SUCCEEDED)
    projection.put(record.evolve(status=Status.RUNNING, attempt=9))
    assert shown(projection, record.id).status is Status.SUCCEEDED


def test_a_stale_attempt_does_not_overwrite_a_newer_one(projection: BuildProjection, put: Any) -> None:
    record = put()
    projection.put(record.evolve(attempt=2, worker="new"))
    projection.put(record.evolve(attempt=1, worker="old"))
    assert shown(projection, record.id).worker == "new"


def test_no_update_is_lost_when_many_write(projection: BuildProjection, put: Any) -> None:
    record = put()

    def add(number: int) -> None:
        for step in range(10):
            label = {f"{number}-{step}": "x"}

            def with_label(shown: BuildRecord, label: dict[str, str] = label) -> BuildRecord:
                return shown.evolve(spec=shown.spec.model_copy(update={"labels": shown.spec.labels | label}))

            projection.update(record.id, with_label, absent=record)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shown(projection, record.id).spec.labels) == 40


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_pages_leave_no_gap_and_repeat_nothing(projection: BuildProjection, put: Any, batch: int) -> None:
    ids = [put().id for _ in range(7)]
    found: list[str] = []
    cursor = None
    while True:
        page = projection.list(BuildFilter(), batch, cursor)
        found += [record.id for record in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert found == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (BuildFilter(), {"a", "b", "c"}),
        (BuildFilter(status=(Status.FAILED,)), {"b"}),
        (BuildFilter(status=(Status.FAILED, Status.SUCCEEDED)), {"b", "c"}),
        (BuildFilter(model="b" * 64), {"b", "c"}),
        (BuildFilter(arch="sm_86"), {"a"}),
        (BuildFilter(trunk=Trunk.BF16), {"c"}),
        (BuildFilter(mode="rope"), {"a", "b", "c"}),
        (BuildFilter(model="b" * 64, status=(Status.SUCCEEDED, Status.QUEUED)), {"c"}),
        (BuildFilter(model="b" * 64, arch="sm_86"), set()),
        (BuildFilter(submitter="nobody"), set()),
    ],
)
def test_filters_narrow(projection: BuildProjection, put: Any, wanted: BuildFilter, expected: set[str]) -> None:
    names = {
        put(arch="sm_86").id: "a",
        put(Status.FAILED, model="b" * 64).id: "b",
        put(Status.SUCCEEDED, model="b" * 64, trunk="bf16").id: "c",
    }
    assert {names[record.id] for record in projection.list(wanted, 10).items} == expected


def test_several_filters_page_as_one_does(projection: BuildProjection, put: Any) -> None:
    ids = [put(model=("b" if number % 2 else "a") * 64, trunk="bf16").id for number in range(8)]
    wanted = BuildFilter(model="b" * 64, trunk="bf16")
    first = projection.list(wanted, 3)
    second = projection.list(wanted, 3, first.next)
    assert [record.id for record in (*first.items, *second.items)] == sorted(ids[1::2], reverse=True)
    assert second.next is None


def test_since_leaves_out_what_is_older(projection: BuildProjection, accept: Accept, put: Any) -> None:
    old = put()
    new = put()
    found = projection.list(BuildFilter(since=new.created_at), 10)
    expected = {new.id} | ({old.id} if old.created_at == new.created_at else set())
    assert {record.id for record in found.items} == expected


def test_an_index_follows_the_status(projection: BuildProjection, put: Any) -> None:
    record = put()
    projection.put(record.evolve(status=Status.RUNNING, attempt=1))
    assert not projection.list(BuildFilter(status=(Status.QUEUED,)), 10).items
    assert projection.list(BuildFilter(status=(Status.RUNNING,)), 10).items


def test_positions_follow_priority_then_age(projection: BuildProjection, put: Any) -> None:
    plain, later, urgent, elsewhere = put(), put(), put(priority=9), put(arch="sm_86")
    expected = {urgent.id: 0, min(plain.id, later.id): 1, max(plain.id, later.id): 2, elsewhere.id: 0}
    assert projection.positions([urgent, plain, later, elsewhere]) == expected
    assert projection.depth(queue_of(plain)) == 3
    running = projection.put(urgent.evolve(status=Status.RUNNING, attempt=1))
    assert projection.positions([running]) == {}
    assert projection.positions([plain, later]) == {min(plain.id, later.id): 0, max(plain.id, later.id): 1}


def test_a_record_of_another_version_counts_as_lost(
    builds: BuildRepository, accept: Accept, client: redis.Redis
) -> None:
    accepted = accept()
    builds.restore(accepted.id)
    client.hset(f"atoll:build:{accepted.id}", "doc", '{"of": "another version"}')
    assert builds.projection.get_many([accepted.id]) == ()
    assert builds.projection.get(accepted.id) is None
    assert builds.restore(accepted.id) == new_record(accepted)
