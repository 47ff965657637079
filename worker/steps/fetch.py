"""Fetch: the upload as private files in the scratch folder, at the paths that the graph names."""

import contextlib
import fcntl
import shutil
from pathlib import Path, PurePosixPath

from service.errors import ExternalDataPath, InvalidModel
from worker.steps.context import GRAPH_FILE, Context, Work

_FICLONE = 0x40049409


def fetch(context: Context, work: Work) -> Work:
    """Copies, not links: readers of external data refuse links, and no child may touch the store's own bytes."""
    folder = context.source.parent
    _stage(context, context.model.graph, folder, GRAPH_FILE)
    for location, digest in context.model.external_data.items():
        if PurePosixPath(location) == PurePosixPath(GRAPH_FILE):
            raise InvalidModel(f"External data may not be called {GRAPH_FILE!r} here; rename it and upload again.")
        _stage(context, digest, folder, location)
    for digest, path in zip(context.spec.accuracy.samples, context.samples, strict=True):
        _stage(context, digest, path.parent, path.name)
    context.journal.note(f"model {context.model.name}: {context.model.size} bytes")
    return work


def _stage(context: Context, digest: str, folder: Path, location: str) -> None:
    target = confined(folder, location)
    target.parent.mkdir(parents=True, exist_ok=True)
    _copy(context.store.local_path(digest), target)


def confined(folder: Path, location: str) -> Path:
    """The path of `location` inside `folder`. Raises ExternalDataPath for one that leads out of it."""
    path = PurePosixPath(location)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in location or "\\" in location:
        raise ExternalDataPath(f"The external-data location {location!r} does not stay in the model's folder.")
    return folder / path


def _copy(source: Path, target: Path) -> None:
    """A reflink where the file system has them: no bytes are read."""
    with source.open("rb") as reading, target.open("xb") as writing:
        with contextlib.suppress(OSError):
            fcntl.ioctl(writing, _FICLONE, reading.fileno())
            return
        shutil.copyfileobj(reading, writing, 1 << 20)
