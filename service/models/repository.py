"""Models in the store: `models/<id>`."""

from collections.abc import Iterator

from service.canonical import is_digest
from service.models.types import Model
from service.store.types import ObjectStore

_FOLDER = "models/"


class ModelRepository:
    """A model is a fact: whoever registers it first gives it its name."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, model: str) -> Model | None:
        data = self._store.get(_FOLDER + model) if is_digest(model) else None
        return None if data is None else Model.model_validate_json(data)

    def put(self, model: Model) -> bool:
        """False if the model was registered already; that fact stays."""
        return self._store.put(_FOLDER + model.id, model.model_dump_json().encode())

    def ids(self) -> Iterator[str]:
        """Ids of all models, in no particular order."""
        return (path.removeprefix(_FOLDER) for path in self._store.list(_FOLDER))
