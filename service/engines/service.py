"""Engines, as the API offers them: by digest, and the newest for a model."""

from collections.abc import Iterator
from dataclasses import dataclass

from service.builds.repository import BuildFilter, BuildProjection, Page
from service.builds.types import BuildRecord, Status
from service.engines.repository import EngineRepository
from service.engines.types import EngineManifest
from service.errors import EngineNotFound
from service.store.types import ObjectStore

__all__ = ["EngineFilter", "EngineService"]

_BATCH = 100
_LISTED = 50


@dataclass(frozen=True, slots=True)
class EngineFilter:
    """What engines are narrowed to; None: any."""

    model: str | None = None
    arch: str | None = None
    mode: str | None = None
    trunk: str | None = None
    toolchain: str | None = None
    toolchain_version: str | None = None
    platform: str | None = None


class EngineService:
    """Bytes and manifests are in the store; which engines there are is read from the projection of builds."""

    def __init__(self, store: ObjectStore, builds: BuildProjection) -> None:
        self._engines = EngineRepository(store)
        self._store = store
        self._builds = builds

    def get(self, digest: str) -> EngineManifest:
        """Raises EngineNotFound, also when the engine's bytes are gone."""
        manifest = self._engines.get(digest)
        if manifest is None or self._store.blob(digest) is None:
            raise EngineNotFound(f"There is no engine {digest[:64]!r} here; GET /engines lists those that there are.")
        return manifest

    def list(self, wanted: EngineFilter, limit: int, cursor: str | None = None) -> Page[EngineManifest]:
        """Newest first. An engine that several builds ended in appears once: where its manifest says it was built."""
        found: list[EngineManifest] = []
        last = cursor
        for record, manifest in self._matching(wanted, cursor):
            if manifest.build != record.id:
                continue
            if len(found) == limit:
                return Page(tuple(found), last)
            found.append(manifest)
            last = record.id
        return Page(tuple(found))

    def newest(self, wanted: EngineFilter) -> EngineManifest:
        """Raises EngineNotFound, which lists what the model has instead."""
        for _, manifest in self._matching(wanted, None):
            return manifest
        available = self.list(EngineFilter(model=wanted.model), _LISTED).items
        raise EngineNotFound(
            f"Model {wanted.model} has no engine with {_describe(wanted)}. "
            + ("Choose one of `available`, or build it." if available else "It has none at all; build it."),
            available=[_brief(manifest) for manifest in available],
        )

    def _matching(self, wanted: EngineFilter, cursor: str | None) -> Iterator[tuple[BuildRecord, EngineManifest]]:
        for record in self._succeeded(wanted, cursor):
            manifest = self._engines.get(record.engine.digest) if record.engine else None
            if manifest is not None and _fits(record, manifest, wanted) and self._store.blob(manifest.digest):
                yield record, manifest

    def _succeeded(self, wanted: EngineFilter, cursor: str | None) -> Iterator[BuildRecord]:
        builds = BuildFilter((Status.SUCCEEDED,), wanted.model, wanted.arch, wanted.mode, wanted.trunk)
        while True:
            page = self._builds.list(builds, _BATCH, cursor)
            yield from page.items
            if page.next is None:
                return
            cursor = page.next


def _fits(record: BuildRecord, manifest: EngineManifest, wanted: EngineFilter) -> bool:
    return (
        wanted.toolchain in (None, record.spec.toolchain)
        and wanted.toolchain_version in (None, record.spec.toolchain_version)
        and wanted.platform in (None, manifest.platform)
    )


def _describe(wanted: EngineFilter) -> str:
    names = ("arch", "mode", "trunk", "toolchain", "toolchain_version", "platform")
    return ", ".join(f"{name} {value}" for name in names if (value := getattr(wanted, name)) is not None)


def _brief(manifest: EngineManifest) -> dict[str, str]:
    return {
        "digest": manifest.digest,
        "arch": manifest.arch,
        "mode": manifest.mode,
        "trunk": manifest.trunk,
        "toolchain": manifest.toolchain,
        "toolchain_version": manifest.toolchain_version,
        "platform": manifest.platform,
    }
