"""Ringing for builds from the API's side: messages by name, each build at most every few seconds."""

import redis

from service import broker
from service.builds.projection import PREFIX, queue_of
from service.builds.types import BuildRecord
from service.settings import Settings

RING_AGAIN_SECONDS = 15


class Dispatcher:
    """Sends `atoll.build` to the queue of a build's toolchain, version and arch."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._redis = client
        self._app = broker.celery_app(settings, "atoll-dispatch")

    def ring(self, record: BuildRecord) -> None:
        """Raises Unavailable when the broker is away."""
        broker.ring(self._app, record.id, queue_of(record), record.spec.priority)
        self._redis.set(_rung_key(record.id), record.attempt, ex=RING_AGAIN_SECONDS)

    def rung_lately(self, build: str, attempt: int) -> bool:
        """Whether the message that would end the wait after `attempt` was sent a few seconds ago."""
        return self._redis.get(_rung_key(build)) == str(attempt)

    def waiting(self, queue: str) -> set[str]:
        """The builds that have a message in `queue`."""
        return set(broker.rung(self._redis, queue))


def _rung_key(build: str) -> str:
    return f"{PREFIX}rung:{build}"
