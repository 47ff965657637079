"""Leases: which worker runs a build, on the Redis server's clock; and the flags that pass between API and worker.

A lease only says who is alive. What decides is the fence in the store (`facts`): a lease that was lost, doubled or
flushed can cost time, never a result.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import cast

import redis

from service.builds.projection import PREFIX

_DAY = 24 * 3600

_RENEW = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 'lost' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return holder and 'held' or 'restored'
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class Renewal(StrEnum):
    """What a beat found. RESTORED: there was no lease (flushed or expired) and it was taken again."""

    HELD = "held"
    RESTORED = "restored"
    LOST = "lost"


class Leases:
    """Leases of builds. `seconds` is their life; errors are redis' own."""

    def __init__(self, client: redis.Redis, seconds: float) -> None:
        self._redis = client
        self._milliseconds = int(seconds * 1000)
        self._renew = client.register_script(_RENEW)
        self._release = client.register_script(_RELEASE)

    def take(self, build: str, token: str) -> bool:
        return bool(self._redis.set(_lease_key(build), token, nx=True, px=self._milliseconds))

    def renew(self, build: str, token: str) -> Renewal:
        return Renewal(str(self._renew(keys=[_lease_key(build)], args=[token, self._milliseconds])))

    def release(self, build: str, token: str) -> None:
        self._release(keys=[_lease_key(build)], args=[token])

    def held(self, builds: Sequence[str]) -> set[str]:
        """Those of `builds` that a live worker holds."""
        if not builds:
            return set()
        holders = cast("list[str | None]", self._redis.mget([_lease_key(build) for build in builds]))
        return {build for build, holder in zip(builds, holders, strict=True) if holder is not None}

    def hand_back(self, build: str, attempt: int) -> None:
        """Say that `attempt` was given up in good order, so that it is not counted as a worker's death."""
        self._redis.set(f"{PREFIX}handed-back:{build}", attempt, ex=_DAY)

    def was_handed_back(self, build: str, attempt: int) -> bool:
        return self._redis.get(f"{PREFIX}handed-back:{build}") == str(attempt)

    def request_cancel(self, build: str) -> None:
        self._redis.set(f"{PREFIX}cancel:{build}", 1, ex=_DAY)

    def cancel_requested(self, build: str) -> bool:
        return bool(self._redis.exists(f"{PREFIX}cancel:{build}"))


def _lease_key(build: str) -> str:
    return f"{PREFIX}lease:{build}"
