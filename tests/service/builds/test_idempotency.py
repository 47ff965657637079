"""`Idempotency-Key`: the same request, the same answer."""

import pytest
import redis

from service.builds.idempotency import Answer, Idempotency
from service.errors import Conflict, IdempotencyKeyReused


@pytest.fixture
def keys(client: redis.Redis) -> Idempotency:
    return Idempotency(client)


def test_the_second_request_gets_the_first_answer(keys: Idempotency) -> None:
    assert keys.begin("me", "k", "body") is None
    keys.remember("me", "k", "body", Answer(build="b"))
    assert keys.begin("me", "k", "body") == Answer(build="b")


def test_another_request_with_the_key_is_refused(keys: Idempotency) -> None:
    keys.begin("me", "k", "body")
    keys.remember("me", "k", "body", Answer(group="g"))
    with pytest.raises(IdempotencyKeyReused):
        keys.begin("me", "k", "other body")


def test_while_the_first_is_being_answered_the_second_conflicts(keys: Idempotency) -> None:
    keys.begin("me", "k", "body")
    with pytest.raises(Conflict):
        keys.begin("me", "k", "body")


def test_a_refused_request_may_be_sent_again(keys: Idempotency) -> None:
    keys.begin("me", "k", "body")
    keys.forget("me", "k")
    assert keys.begin("me", "k", "other body") is None


def test_keys_of_two_submitters_are_two_keys(keys: Idempotency) -> None:
    keys.begin("me", "k", "body")
    assert keys.begin("you", "k", "other body") is None
