"""What both the API and the workers know of builds: facts in the store, the projection and the leases in Redis."""

from service.builds.facts import BuildFacts, may_follow, runs
from service.builds.flights import Flights
from service.builds.leases import Leases, Renewal
from service.builds.projection import BuildFilter, BuildProjection, Page, Versioned, queue_of
from service.builds.record import attempted, ended, new_record, record_from_facts, with_joined

__all__ = [
    "BuildFacts",
    "BuildFilter",
    "BuildProjection",
    "Flights",
    "Leases",
    "Page",
    "Renewal",
    "Versioned",
    "attempted",
    "ended",
    "may_follow",
    "new_record",
    "queue_of",
    "record_from_facts",
    "runs",
    "with_joined",
]
