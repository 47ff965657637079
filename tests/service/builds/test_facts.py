"""How a build ends: once, by the first success or the newest attempt."""

import threading

import pytest

from service.builds.facts import BuildFacts, may_follow
from service.builds.types import Attempt, Cause, Finished, Status, now
from service.errors import CorruptArtifact
from service.store.local import LocalStore


@pytest.fixture
def facts(store: LocalStore) -> BuildFacts:
    return BuildFacts(store)


def attempt(n: int, cause: Cause = "accepted", worker: str = "w") -> Attempt:
    return Attempt(n=n, worker=worker, started_at=now(), cause=cause)


def end(n: int, status: Status = Status.FAILED) -> Finished:
    return Finished(status=status, attempt=n, finished_at=now())


def test_a_fence_is_claimed_once(facts: BuildFacts) -> None:
    barrier = threading.Barrier(8)
    won: list[str] = []

    def race(worker: str) -> None:
        barrier.wait()
        if facts.claim("b", attempt(1, worker=worker)):
            won.append(worker)

    threads = [threading.Thread(target=race, args=(f"w{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert [a.worker for a in facts.attempts("b")] == won


def test_the_first_success_wins_from_any_attempt(facts: BuildFacts) -> None:
    facts.claim("b", attempt(1))
    facts.claim("b", attempt(2))
    assert facts.succeed("b", end(1, Status.SUCCEEDED)).attempt == 1
    assert facts.succeed("b", end(2, Status.SUCCEEDED)).attempt == 1


def test_a_failure_of_an_older_attempt_is_dropped(facts: BuildFacts) -> None:
    facts.claim("b", attempt(1))
    facts.claim("b", attempt(2))
    assert facts.end("b", end(1)) is None
    assert facts.finished("b") is None
    ended = facts.end("b", end(2))
    assert ended is not None
    assert ended.attempt == 2


def test_nobody_claims_after_a_failure(facts: BuildFacts) -> None:
    facts.claim("b", attempt(1))
    facts.end("b", end(1))
    assert not facts.claim("b", attempt(2))


def test_a_success_that_came_first_survives_a_failure(facts: BuildFacts) -> None:
    facts.claim("b", attempt(1))
    facts.claim("b", attempt(2))
    facts.succeed("b", end(1, Status.SUCCEEDED))
    counted = facts.end("b", end(2))
    assert counted is not None
    assert counted.status is Status.SUCCEEDED


def test_an_end_is_completed_after_its_writer_died_between_seal_and_finished(facts: BuildFacts) -> None:
    facts.claim("b", attempt(1))
    facts.claim("b", attempt(2).model_copy(update={"ending": end(1)}))
    assert facts.finished("b") is None
    settled = facts.settle("b")
    assert settled is not None
    assert facts.finished("b") == settled


def test_without_a_seal_nothing_is_settled(facts: BuildFacts) -> None:
    assert facts.settle("b") is None
    facts.claim("b", attempt(1))
    assert facts.settle("b") is None


def test_attempts_come_in_the_order_of_their_numbers(facts: BuildFacts) -> None:
    for n in (2, 10, 1):
        facts.claim("b", attempt(n))
    assert [a.n for a in facts.attempts("b")] == [1, 2, 10]


@pytest.mark.parametrize(
    ("causes", "cause", "allowed"),
    [
        (["accepted"], "child-crashed", True),
        (["accepted", "child-crashed"], "child-crashed", True),
        (["accepted", "child-crashed", "child-crashed"], "child-crashed", False),
        (["accepted", *["worker-lost"] * 8], "worker-lost", True),
        (["accepted", *["worker-lost"] * 9], "worker-lost", False),
        (["accepted", *["worker-lost"] * 9], "child-crashed", True),
        (["accepted", *["handed-back"] * 50], "worker-lost", True),
    ],
)
def test_deaths_are_counted_by_their_cause(causes: list[Cause], cause: Cause, allowed: bool) -> None:
    assert may_follow(tuple(attempt(n, each) for n, each in enumerate(causes, 1)), cause) is allowed


def test_the_first_answer_to_a_key_stays(facts: BuildFacts) -> None:
    assert facts.put_answer("k", "d1") == "d1"
    assert facts.put_answer("k", "d2") == "d1"
    facts.forget_answer("k")
    assert facts.put_answer("k", "d2") == "d2"


def test_a_damaged_fact_is_named(facts: BuildFacts, store: LocalStore) -> None:
    store.put("builds/b/finished", b"{")
    with pytest.raises(CorruptArtifact, match="builds/b/finished"):
        facts.finished("b")
