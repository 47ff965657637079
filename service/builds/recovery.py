"""Computing the projection again from the store: after a flush, a restart, or against an empty Redis."""

from typing import cast

import redis

from service import log
from service.builds.flights import EPOCH_KEY
from service.builds.idempotency import Idempotency
from service.builds.projection import PREFIX
from service.builds.repository import BuildRepository
from service.errors import CorruptArtifact

_INDEXED_KEY = f"{PREFIX}indexed"
_GRACE_KEY = f"{PREFIX}grace"
_log = log.get(__name__)


class Recovery:
    """Restores records, indexes, flights and idempotency keys.

    The projection is *current* when `atoll:epoch` names the running server: a flush removes the key and a restart
    changes the server's run id, after which its last second of writes may be missing.
    """

    def __init__(self, client: redis.Redis, builds: BuildRepository, grace_seconds: float) -> None:
        self._redis = client
        self._builds = builds
        self._idempotency = Idempotency(client)
        self._grace_milliseconds = int(grace_seconds * 1000)

    def is_current(self) -> bool:
        return self._redis.get(EPOCH_KEY) == self._server()

    def is_indexed(self) -> bool:
        return self._redis.get(_INDEXED_KEY) == self._server()

    def in_grace(self) -> bool:
        """Whether workers may not have had the time to renew leases that were flushed."""
        return bool(self._redis.exists(_GRACE_KEY))

    def restore_pending(self) -> None:
        """Make the projection current: all builds in flight are shown, and single flight holds again."""
        server = self._server()
        self._redis.set(_GRACE_KEY, 1, px=self._grace_milliseconds)
        for build in self._builds.facts.pending():
            self._restore(build)
        self._redis.set(EPOCH_KEY, server)
        _log.info("builds in flight restored", action="projection.current", server=server)

    def reindex(self) -> int:
        """Restore every build and group of the store, one after the other; how many builds there are."""
        server = self._server()
        count = 0
        for build in self._builds.facts.builds():
            self._restore(build)
            count += 1
        for group in self._builds.facts.groups():
            self._builds.projection.add_to_group(group.id, group.builds)
        self._redis.set(_INDEXED_KEY, server)
        _log.info("projection indexed", action="projection.indexed", builds=count)
        return count

    def _restore(self, build: str) -> None:
        try:
            accepted = self._builds.facts.accepted(build)
            if accepted is not None:
                self._builds.restore(build)
                self._idempotency.restore(accepted)
        except CorruptArtifact as error:
            # One build's damaged facts must not hide the others.
            _log.error("cannot restore", action="projection.damaged", build=build, error=error.detail)

    def _server(self) -> str:
        return str(cast("dict[str, object]", self._redis.info("server"))["run_id"])
