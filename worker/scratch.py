"""Scratch folders: one for each attempt, removed with it, and by the next attempt if its worker was killed."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.builds.repository import REDIS_AWAY

_PREFIX = "build-"


@contextmanager
def scratch_folder(root: Path, build: str, attempt: int, held: Callable[[Sequence[str]], set[str]]) -> Iterator[Path]:
    """A private folder under `root` while the context lasts. `held` tells which builds live workers hold."""
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root, build, held)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{build}.{attempt}.", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(root: Path, build: str, held: Callable[[Sequence[str]], set[str]]) -> None:
    """Remove what dead workers left: folders of builds that nobody holds, and of earlier attempts of this one."""
    folders = {folder: folder.name.removeprefix(_PREFIX).partition(".")[0] for folder in root.glob(f"{_PREFIX}*")}
    try:
        in_use = held(sorted(set(folders.values()))) - {build}
    except REDIS_AWAY:
        return
    for folder, owner in folders.items():
        if owner not in in_use:
            shutil.rmtree(folder, ignore_errors=True)
