"""Single flight: at most one build in flight for a build key, however many processes are asked for it at once.

`atoll:inflight:<key>` holds the build's id. It is claimed with a short life, and confirmed once the build is durable: a
claimer that dies in between blocks others for `CLAIM_SECONDS` at most. Claims are refused while the projection is not
current (`atoll:epoch`), because flights that a flush forgot would be flown twice.
"""

import time
from dataclasses import dataclass
from typing import cast

import redis

from service.builds.facts import BuildFacts
from service.builds.projection import PREFIX

EPOCH_KEY = f"{PREFIX}epoch"
CLAIM_SECONDS = 10
_POLL_SECONDS = 0.02

# Answers 'flushed', the id that flies, or `mine` when it was claimed; `over` is a flight known to have ended.
_CLAIM = """
local flight, epoch = KEYS[1], KEYS[2]
local mine, over, life = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', epoch) == 0 then return 'flushed' end
local current = redis.call('GET', flight)
if current and current ~= over then return current end
redis.call('SET', flight, mine, 'PX', life)
return mine
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


@dataclass(frozen=True, slots=True)
class Flight:
    """The build that flies for a key; `mine` when this request has to start it."""

    build: str
    mine: bool


class Flushed(Exception):  # noqa: N818  # not an error for a user: the caller restores the projection and asks again
    """Redis was flushed since the projection was computed."""


class Flights:
    """Claims on build keys. Errors are redis' own."""

    def __init__(self, client: redis.Redis, facts: BuildFacts) -> None:
        self._redis = client
        self._facts = facts
        self._claim = client.register_script(_CLAIM)
        self._release = client.register_script(_RELEASE)

    def board(self, key: str, build: str) -> Flight:
        """Claim `key` for the new `build`, or find the accepted, unfinished build that has it. Raises Flushed."""
        over = ""
        while True:
            current = str(self._claim(keys=[_key(key), EPOCH_KEY], args=[build, over, int(CLAIM_SECONDS * 1000)]))
            if current == "flushed":
                raise Flushed
            if current == build:
                return Flight(build, mine=True)
            if self._facts.finished(current) is not None:
                over = current
            elif self._facts.accepted(current) is not None:
                return Flight(current, mine=False)
            else:
                time.sleep(_POLL_SECONDS)  # its claimer is about to accept it, or died and its claim will expire

    def confirm(self, key: str, build: str) -> None:
        """The build is durable: from now on only its end frees the key."""
        self._redis.set(_key(key), build)

    def land(self, key: str, build: str) -> None:
        self._release(keys=[_key(key)], args=[build])

    def restore(self, key: str, build: str) -> None:
        """After a flush: `build` is in flight, unless another one is already known to be."""
        self._redis.set(_key(key), build, nx=True)

    def current(self, key: str) -> str | None:
        return cast("str | None", self._redis.get(_key(key)))


def _key(key: str) -> str:
    return f"{PREFIX}inflight:{key}"
