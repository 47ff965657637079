"""Files that are whole and on the disk, or not there: temporary file, fsync, link, fsync of the folder."""

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from service.errors import InsufficientStorage, Unavailable

_FULL = (errno.ENOSPC, errno.EDQUOT)
_SUFFIX = ".part"


@contextmanager
def write_errors() -> Iterator[None]:
    """Translate what the operating system says while something is written."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InsufficientStorage(
                "The store's disk is full; nothing was stored. Free space or enlarge the disk, then send it again."
            ) from error
        raise Unavailable(f"The store cannot be written ({error.strerror}); nothing was stored.") from error


def open_temporary(folder: Path) -> tuple[BinaryIO, Path]:
    """A new file that is locked while its writer lives, so that `sweep` can tell what the dead left behind.

    The lock is of no use before it is held: a sweep in between removes the file, and then another one is made.
    """
    while True:
        path = folder / f"{secrets.token_hex(16)}{_SUFFIX}"
        file = path.open("xb", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file, path
        file.close()


def sweep(folder: Path) -> int:
    """Remove temporary files whose writers are dead; the number of files removed."""
    return sum(remove_if_dead(path) for path in folder.glob(f"*{_SUFFIX}"))


def remove_if_dead(path: Path) -> bool:
    """Remove a file unless a living process holds its lock; whether it is gone by this call."""
    with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """An unbuffered write may take only a part."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def sync_file(file: BinaryIO) -> None:
    """Make the bytes durable, and read-only for good."""
    os.fchmod(file.fileno(), 0o444)
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Like `mkdir -p`, durable: each new entry is synced in its parent."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def link_if_absent(source: Path, target: Path) -> bool:
    """Give `source` the name `target` unless it is taken: atomic, and durable either way."""
    make_folder(target.parent)
    try:
        os.link(source, target)
    except FileExistsError:
        created = False
    else:
        created = True
    sync_folder(target.parent)
    return created


def unlink_if_there(target: Path) -> bool:
    """Remove a name, durably; False if there was none."""
    try:
        target.unlink()
    except FileNotFoundError:
        return False
    sync_folder(target.parent)
    return True


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Hold a lock between processes; it goes with its holder."""
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
