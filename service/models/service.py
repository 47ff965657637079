"""Models, as the API offers them: register what was uploaded, assemble from blobs, look."""

import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from service import log
from service.builds.types import Digest, Name
from service.errors import ExternalDataPath, InvalidRequest, ModelNotFound
from service.models.repository import ModelRepository
from service.models.types import Model, model_id
from service.settings import Settings
from service.store.types import Blob, ObjectStore
from service.uploads.names import base_name
from service.wire.child import scan_in_child

__all__ = ["Assembly", "ModelService"]

_log = log.get(__name__)


class Assembly(BaseModel):
    """A model made of blobs that were uploaded before; `external_data` maps each location in the graph to a blob."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    graph: Digest
    external_data: dict[Name, Digest] = Field(default={}, max_length=10_000)
    name: Name = "model"


class ModelService:
    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._models = ModelRepository(store)
        self._store = store
        self._settings = settings

    def register(self, graph: Blob, external_data: Mapping[str, Blob], name: str) -> tuple[Model, bool]:
        """The model that these blobs are, and whether it is new. `name` is the file's name.

        Raises the kinds of InvalidModel; then the blobs that this upload brought are gone again.
        """
        digests = {location: blob.digest for location, blob in external_data.items()}
        known = self._models.get(model_id(graph.digest, digests))
        if known is not None:
            return known, False
        try:
            model = self._scan(graph, external_data, digests, base_name(name))
        except BaseException:
            self._take_back(graph, *external_data.values())
            raise
        created = self._models.put(model)
        _log.info("model registered", action="model.registered", model=model.id, size=model.size, created=created)
        return model, created

    def assemble(self, assembly: Assembly) -> tuple[Model, bool]:
        """Register a model from blobs that are here. Raises InvalidRequest, which names those that are not."""
        wanted = {"graph": assembly.graph}
        wanted |= {f"external_data.{location}": digest for location, digest in assembly.external_data.items()}
        found = {where: self._store.blob(digest) for where, digest in wanted.items()}
        blobs = {where: blob for where, blob in found.items() if blob is not None}
        if missing := [where for where in wanted if where not in blobs]:
            raise _not_uploaded({where: wanted[where] for where in missing})
        graph = blobs.pop("graph")
        external = {where.removeprefix("external_data."): blob for where, blob in blobs.items()}
        return self.register(graph, external, assembly.name)

    def get(self, model: str) -> Model:
        """Raises ModelNotFound."""
        found = self._models.get(model)
        if found is None:
            raise ModelNotFound(f"There is no model {model[:64]!r} here; upload it with POST /models.")
        return found

    def ids(self) -> Iterator[str]:
        """Ids of all models, in no particular order."""
        return self._models.ids()

    def _scan(self, graph: Blob, external: Mapping[str, Blob], digests: dict[str, str], name: str) -> Model:
        _check_twins(external)
        sizes = {location: blob.size for location, blob in external.items()}
        return Model(
            id=model_id(graph.digest, digests),
            name=name,
            graph=graph.digest,
            external_data=digests,
            size=graph.size + sum(sizes.values()),
            scan=scan_in_child(self._store.local_path(graph.digest), sizes, self._settings),
            created_at=datetime.now(UTC),
        )

    def _take_back(self, *blobs: Blob) -> None:
        for blob in blobs:
            self._store.take_back(blob)


def _check_twins(locations: Mapping[str, Blob]) -> None:
    """Locations that some file systems take for one file; a worker may have such a file system."""
    seen: dict[str, str] = {}
    for location in locations:
        twin = seen.setdefault(unicodedata.normalize("NFC", location).casefold(), location)
        if twin != location:
            raise ExternalDataPath(
                f"The external-data files {twin!r} and {location!r} differ only in case or Unicode form, so some file "
                "systems take them for one. Rename one of them."
            )


def _not_uploaded(missing: Mapping[str, str]) -> InvalidRequest:
    first = next(iter(missing.values()))
    return InvalidRequest(
        f"{len(missing)} of the blobs are not here, the first is {first}. Upload them, then assemble the model.",
        errors=[{"where": where, "message": f"there is no blob {digest}"} for where, digest in missing.items()][:100],
    )
