"""Manifests of engines in the store: `engines/<digest>`."""

from service.canonical import is_digest
from service.engines.types import EngineManifest
from service.store.types import ObjectStore

_FOLDER = "engines/"


class EngineRepository:
    """Builds with different keys may end in the same bytes: one engine then, described by the first manifest."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, digest: str) -> EngineManifest | None:
        data = self._store.get(_FOLDER + digest) if is_digest(digest) else None
        return None if data is None else EngineManifest.model_validate_json(data)

    def put(self, manifest: EngineManifest) -> bool:
        """False if the engine was described already; that manifest stays."""
        return self._store.put(_FOLDER + manifest.digest, manifest.model_dump_json().encode())
