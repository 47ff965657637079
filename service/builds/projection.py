"""The live projection of builds in Redis: a record each, indexes over them, and the order of the queues.

It may be lost at any time; `recovery` computes it again from the store. Ids of builds are ULIDs, so the order of ids is
the order of creation: indexes are sorted sets whose members all have score 0 and are read by range of ids.
"""

import heapq
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, Generic, TypeVar, cast

import redis
from pydantic import ValidationError
from ulid import ULID

from service import log
from service.builds.types import BuildRecord, Status
from service.workers.types import queue_name

PREFIX = "atoll:"
_ALL = f"{PREFIX}builds"
_BATCH = 200
_SINGLE = ("model", "arch", "mode", "trunk", "key", "submitter", "group")

T = TypeVar("T")
_log = log.get(__name__)

# Writes a record and its index entries if nobody wrote since `expected` was read; answers the new revision or "".
# Revisions are the server's microseconds, made strictly increasing: they stay unique across a flush.
_WRITE = """
local record, id, expected, doc, indexes = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local rev = redis.call('HGET', record, 'rev') or ''
if rev ~= expected then return '' end
local before = redis.call('HGET', record, 'indexes')
if before ~= indexes then
  for _, entry in ipairs(cjson.decode(before or '[]')) do redis.call('ZREM', entry[1], id) end
  for _, entry in ipairs(cjson.decode(indexes)) do redis.call('ZADD', entry[1], entry[2], id) end
end
local time = redis.call('TIME')
local new = tonumber(time[1]) * 1000000 + tonumber(time[2])
if rev ~= '' and new <= tonumber(rev) then new = tonumber(rev) + 1 end
local text = string.format('%.0f', new)
redis.call('HSET', record, 'doc', doc, 'rev', text, 'indexes', indexes)
return text
"""


@dataclass(frozen=True, slots=True)
class BuildFilter:
    """What a list is narrowed to: all of the given values must hold; of several statuses, any."""

    status: tuple[Status, ...] = ()
    model: str | None = None
    arch: str | None = None
    mode: str | None = None
    trunk: str | None = None
    key: str | None = None
    submitter: str | None = None
    group: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list; `next` is where the following part begins, None at the end."""

    items: tuple[T, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Versioned:
    """A record and its revision, which changes whenever the record does and is never used twice."""

    record: BuildRecord
    rev: str


class BuildProjection:
    """Records of builds in Redis. Errors are redis' own."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._write = client.register_script(_WRITE)

    def get(self, build: str) -> Versioned | None:
        doc, rev = cast("list[str | None]", self._redis.hmget(_record_key(build), ["doc", "rev"]))
        if doc is None or rev is None:
            return None
        record = _parsed(doc)
        if record is None:
            self._redis.delete(_record_key(build))
            return None
        return Versioned(record, rev)

    def get_many(self, builds: Sequence[str]) -> tuple[BuildRecord, ...]:
        """Those of `builds` that have a record, in the given order."""
        with self._redis.pipeline(transaction=False) as pipe:
            for build in builds:
                pipe.hget(_record_key(build), "doc")
            docs = pipe.execute()
        found = (_parsed(doc) for doc in docs if doc is not None)
        return tuple(record for record in found if record is not None)

    def rev(self, build: str) -> str | None:
        return cast("str | None", self._redis.hget(_record_key(build), "rev"))

    def put(self, record: BuildRecord) -> BuildRecord:
        """Show `record`, unless what is shown is the end of the build or belongs to a newer attempt."""
        return self.update(record.id, lambda _: record, absent=record)

    def update(self, build: str, change: Callable[[BuildRecord], BuildRecord], *, absent: BuildRecord) -> BuildRecord:
        """Apply `change` to the record (to `absent`, where there is none) and return what is shown then.

        `change` is called again when another process wrote in between. A terminal record never changes, and a change
        never takes a record back to an older attempt.
        """
        while True:
            current = self.get(build)
            before = current.record if current else absent
            after = change(before)
            if current and (before.status.terminal or after.attempt < before.attempt or after == before):
                return before
            if self._try_write(after, current.rev if current else ""):
                return after

    def list(self, wanted: BuildFilter, limit: int, cursor: str | None = None) -> Page[BuildRecord]:
        """Newest first. The cost follows `limit` for at most one filter; several are intersected, smallest first."""
        ids = list(islice(self._matching(wanted, cursor, limit), limit + 1))
        return Page(self.get_many(ids[:limit]), ids[limit - 1] if len(ids) > limit else None)

    def positions(self, records: Sequence[BuildRecord]) -> dict[str, int]:
        """For each of `records` that waits: how many builds of its queue a worker takes before it."""
        waiting = [record for record in records if record.status is Status.QUEUED]
        with self._redis.pipeline(transaction=False) as pipe:
            for record in waiting:
                pipe.zrank(waiting_key(queue_of(record)), record.id)
            ranks = pipe.execute()
        return {record.id: rank for record, rank in zip(waiting, ranks, strict=True) if rank is not None}

    def depth(self, queue: str) -> int:
        """How many builds wait in a queue."""
        return self._redis.zcard(waiting_key(queue))

    def add_to_group(self, group: str, builds: Sequence[str]) -> None:
        self._redis.zadd(_index_key("group", group), dict.fromkeys(builds, 0))

    def _try_write(self, record: BuildRecord, expected: str) -> bool:
        arguments = [record.id, expected, record.model_dump_json(), json.dumps(_entries(record))]
        return bool(self._write(keys=[_record_key(record.id)], args=arguments))

    def _matching(self, wanted: BuildFilter, cursor: str | None, limit: int) -> Iterator[str]:
        upper = f"({cursor}" if cursor else "+"
        lower = f"[{_first_id(wanted.since)}" if wanted.since else "-"
        narrowest, *others = sorted(_dimensions(wanted), key=self._size)
        batch = min(limit + 1, _BATCH) if not others else _BATCH
        ids = heapq.merge(*(self._scan(key, upper, lower, batch) for key in narrowest), reverse=True)
        return self._also_in(ids, others) if others else ids

    def _size(self, keys: tuple[str, ...]) -> int:
        return sum(self._redis.zcard(key) for key in keys)

    def _scan(self, key: str, upper: str, lower: str, batch: int) -> Iterator[str]:
        while ids := cast("list[str]", self._redis.zrevrangebylex(key, upper, lower, start=0, num=batch)):
            yield from ids
            upper = f"({ids[-1]}"

    def _also_in(self, ids: Iterator[str], others: Sequence[tuple[str, ...]]) -> Iterator[str]:
        while batch := list(islice(ids, _BATCH)):
            with self._redis.pipeline(transaction=False) as pipe:
                for key in chain.from_iterable(others):
                    pipe.zmscore(key, batch)
                found = iter(pipe.execute())
            hits = [[_members(batch, next(found)) for _ in keys] for keys in others]
            yield from (build for build in batch if all(any(build in hit for hit in group) for group in hits))


def _parsed(doc: str) -> BuildRecord | None:
    """None for what another version of atoll wrote differently: it counts as lost, and is computed again."""
    try:
        return BuildRecord.model_validate_json(doc)
    except ValidationError as error:
        _log.warning("a record cannot be read", action="projection.unreadable", error=str(error))
        return None


def queue_of(record: BuildRecord) -> str:
    """The queue that a record's resolved spec belongs to."""
    spec = record.spec
    assert spec.toolchain is not None
    assert spec.toolchain_version is not None
    assert spec.arch is not None
    return queue_name(spec.toolchain, spec.toolchain_version, spec.arch)


def waiting_key(queue: str) -> str:
    return f"{PREFIX}waiting:{queue}"


def _record_key(build: str) -> str:
    return f"{PREFIX}build:{build}"


def _index_key(field: str, value: str) -> str:
    return f"{PREFIX}builds:{field}:{value}"


def _entries(record: BuildRecord) -> list[list[Any]]:
    """The sorted sets that list this record, each with its score there."""
    fields = {
        "status": record.status.value,
        "model": record.spec.model,
        "arch": record.spec.arch or "",
        "mode": record.spec.mode.value,
        "trunk": record.spec.trunk.value,
        "key": record.key,
        "submitter": record.submitter,
    }
    entries: list[list[Any]] = [[_ALL, 0], *([_index_key(field, value), 0] for field, value in fields.items())]
    if record.status is Status.QUEUED:
        entries.append([waiting_key(queue_of(record)), 9 - record.spec.priority])
    return entries


def _dimensions(wanted: BuildFilter) -> list[tuple[str, ...]]:
    """For each filter the indexes of which any may list a match."""
    found = [tuple(_index_key("status", status.value) for status in dict.fromkeys(wanted.status))]
    for field in _SINGLE:
        value = getattr(wanted, field)
        found.append(() if value is None else (_index_key(field, value),))
    return [keys for keys in found if keys] or [(_ALL,)]


def _members(ids: Sequence[str], scores: Sequence[float | None]) -> set[str]:
    return {build for build, score in zip(ids, scores, strict=True) if score is not None}


def _first_id(since: datetime) -> str:
    """The lowest id that a build accepted at `since` can have."""
    return str(ULID.from_datetime(since))[:10]
