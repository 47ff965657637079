"""`Idempotency-Key`: the same key with the same request gets the same answer, for 24 hours."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import redis

from service.builds.projection import PREFIX
from service.builds.types import Accepted, now
from service.canonical import digest_of
from service.errors import Conflict, IdempotencyKeyReused

LIFE = timedelta(hours=24)
IN_PROGRESS_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was given: a build, or a group of builds."""

    build: str | None = None
    group: str | None = None


class Idempotency:
    """Keys of requests, each with a fingerprint of the request and, once there is one, its answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client

    def begin(self, submitter: str, key: str, fingerprint: str) -> Answer | None:
        """None: nobody used the key yet, go on. Raises Conflict while its first request is still being answered,
        IdempotencyKeyReused for another request."""
        entry = json.dumps({"fingerprint": fingerprint})
        if self._redis.set(_name(submitter, key), entry, nx=True, ex=IN_PROGRESS_SECONDS):
            return None
        found = json.loads(cast("str | None", self._redis.get(_name(submitter, key))) or entry)
        if found["fingerprint"] != fingerprint:
            raise IdempotencyKeyReused(
                "This Idempotency-Key was sent with another request in the last 24 hours; send a new key."
            )
        if "build" not in found:
            raise Conflict("The first request with this Idempotency-Key is still being answered; send it again later.")
        return Answer(found["build"], found["group"])

    def remember(self, submitter: str, key: str, fingerprint: str, answer: Answer) -> None:
        self._redis.set(_name(submitter, key), _entry(fingerprint, answer), ex=LIFE)

    def forget(self, submitter: str, key: str) -> None:
        self._redis.delete(_name(submitter, key))

    def restore(self, accepted: Accepted) -> None:
        """After a flush: what an accepted build says of the request that it came from."""
        left = accepted.created_at + LIFE - now()
        if accepted.idempotency_key is None or accepted.idempotency_fingerprint is None or left <= timedelta(seconds=1):
            return
        answer = Answer(group=accepted.group) if accepted.group else Answer(build=accepted.id)
        entry = _entry(accepted.idempotency_fingerprint, answer)
        self._redis.set(_name(accepted.submitter, accepted.idempotency_key), entry, nx=True, ex=left)


def _entry(fingerprint: str, answer: Answer) -> str:
    return json.dumps({"fingerprint": fingerprint, "build": answer.build, "group": answer.group})


def _name(submitter: str, key: str) -> str:
    return f"{PREFIX}idempotency:{digest_of(json.dumps([submitter, key]).encode())}"
