"""Builds as both the API and the workers know them: facts in the store; projection, leases and flights in Redis."""

from typing import Self

import redis

from service import log
from service.builds.facts import BuildFacts, may_follow, runs
from service.builds.flights import Flight, Flights, Flushed
from service.builds.leases import Leases, Renewal
from service.builds.projection import BuildFilter, BuildProjection, Page, Versioned, queue_of
from service.builds.record import ended, new_record, record_from_facts, requeued, with_joined
from service.builds.types import BuildRecord, Finished
from service.settings import Settings
from service.store.types import ObjectStore

__all__ = [
    "REDIS_AWAY",
    "BuildFacts",
    "BuildFilter",
    "BuildProjection",
    "BuildRepository",
    "Flight",
    "Flights",
    "Flushed",
    "Leases",
    "Page",
    "Renewal",
    "Versioned",
    "may_follow",
    "new_record",
    "queue_of",
    "record_from_facts",
    "requeued",
    "runs",
    "with_joined",
]

REDIS_AWAY = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, redis.exceptions.OutOfMemoryError)
"""What redis-py raises when the server is away or cannot take more; the truth is in the store, so work goes on."""

_log = log.get(__name__)


class BuildRepository:
    """The four views of builds, and the two moves that touch several of them."""

    def __init__(self, facts: BuildFacts, projection: BuildProjection, leases: Leases, flights: Flights) -> None:
        self.facts = facts
        self.projection = projection
        self.leases = leases
        self.flights = flights

    @classmethod
    def over(cls, settings: Settings, store: ObjectStore, client: redis.Redis) -> Self:
        facts = BuildFacts(store)
        leases = Leases(client, settings.lease_seconds)
        return cls(facts, BuildProjection(client), leases, Flights(client, facts))

    def restore(self, build: str) -> BuildRecord | None:
        """Show what the facts say of `build`, unless more is shown already. None where nobody accepted it."""
        record = record_from_facts(self.facts, build)
        if record is None:
            return None
        if not record.status.terminal:
            self.flights.restore(record.key, build)
        return self.projection.update(build, lambda shown: _further(shown, record), absent=record)

    def close(self, build: str, finished: Finished) -> None:
        """After the fact `finished`: show it, free the key, and take the build off the reconciler's list.

        While Redis is away nothing is done; the reconciler, which finds the build still pending, does it later.
        """
        record = record_from_facts(self.facts, build)
        if record is None:
            return
        try:
            self.projection.update(build, lambda shown: ended(shown, finished), absent=record)
            self.flights.land(record.key, build)
        except REDIS_AWAY as error:
            _log.warning("redis is away", action="build.close-later", build=build, error=str(error))
            return
        self.facts.clear_pending(build)


def _further(shown: BuildRecord, record: BuildRecord) -> BuildRecord:
    """Of the same attempt, what is shown knows more than facts tell: the stage, the progress."""
    return record if record.status.terminal or record.attempt > shown.attempt else shown
