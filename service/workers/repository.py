"""Workers as they announce themselves in Redis: live ones expire with their beat, seen ones are remembered."""

from collections.abc import Iterable
from typing import cast

import redis
from pydantic import ValidationError

from service import log
from service.workers.types import WorkerInfo

_SEEN = "atoll:workers:seen"
_LIVE = "atoll:workers:live"
_PREFIX = "atoll:worker:"
_log = log.get(__name__)


class WorkerRepository:
    """Announcements. Errors are redis' own."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client

    def announce(self, info: WorkerInfo, ttl: float) -> None:
        """Be live for the next `ttl` seconds of the server's clock."""
        doc = info.model_dump_json()
        with self._redis.pipeline() as pipe:
            pipe.set(_PREFIX + info.name, doc, px=int(ttl * 1000))
            pipe.sadd(_LIVE, info.name)
            pipe.hset(_SEEN, _kind(info), doc)
            pipe.execute()

    def withdraw(self, name: str) -> None:
        with self._redis.pipeline() as pipe:
            pipe.delete(_PREFIX + name)
            pipe.srem(_LIVE, name)
            pipe.execute()

    def live(self) -> tuple[WorkerInfo, ...]:
        names = sorted(cast("set[str]", self._redis.smembers(_LIVE)))
        if not names:
            return ()
        docs = cast("list[str | None]", self._redis.mget([_PREFIX + name for name in names]))
        self._forget([name for name, doc in zip(names, docs, strict=True) if doc is None])
        return _parsed(doc for doc in docs if doc is not None)

    def seen(self) -> tuple[WorkerInfo, ...]:
        """The last announcement of each kind of worker, live or not."""
        docs = cast("list[str]", self._redis.hvals(_SEEN))
        return _parsed(sorted(docs))

    def _forget(self, names: list[str]) -> None:
        if names:
            self._redis.srem(_LIVE, *names)


def _parsed(docs: Iterable[str]) -> tuple[WorkerInfo, ...]:
    """Workers of another version may announce what this one does not know; they do not count."""
    found = []
    for doc in docs:
        try:
            found.append(WorkerInfo.model_validate_json(doc))
        except ValidationError as error:
            _log.warning("an announcement cannot be read", action="worker.unreadable", error=str(error))
    return tuple(found)


def _kind(info: WorkerInfo) -> str:
    """Workers that offer the same are of one kind; their names differ by process."""
    return "|".join(f"{offer.toolchain} {offer.version} {','.join(offer.archs)}" for offer in info.offers)
