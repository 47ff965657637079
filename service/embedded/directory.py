"""The data directory of one `atoll up`: where its parts keep things, and the lock that makes it exclusive."""

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from service.errors import CommandError

_LEFTOVERS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Layout of the folder `root`, made on first use."""

    root: Path

    @classmethod
    def create(cls, root: Path) -> Self:
        """Make the folders. Raises CommandError when that is not possible."""
        directory = cls(root.absolute())
        try:
            for folder in (directory.store, directory.valkey, directory.logs):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(
                f"{root} cannot be the data directory: {error.strerror} ({error.filename}); name another: --data-dir"
            ) from None
        return directory

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def valkey(self) -> Path:
        return self.root / "valkey"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def lock(self) -> "DirectoryLock":
        """Take the directory for this process. Raises CommandError naming the process that has it."""
        return DirectoryLock(self.root / "lock")


class DirectoryLock:
    """An exclusive flock. Children that inherit `fd` hold it too: the folder is free when the last of them is gone."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._acquire(path)
        except BaseException:
            os.close(self.fd)
            raise
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        os.close(self.fd)

    def _acquire(self, path: Path) -> None:
        deadline = time.monotonic() + _LEFTOVERS_SECONDS
        while not self._try():
            holder = self._holder()
            if holder is not None and _alive(holder):
                raise CommandError(
                    f"another `atoll up` (pid {holder}) uses {path.parent}; stop it, or name another folder: --data-dir"
                )
            if time.monotonic() > deadline:
                raise CommandError(
                    f"processes of an earlier `atoll up` (pid {holder}) still use {path.parent}; "
                    "wait until they have stopped, or name another folder: --data-dir"
                )
            time.sleep(0.1)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _holder(self) -> int | None:
        text = os.pread(self.fd, 32, 0).decode(errors="replace")
        return int(text) if text.isdigit() else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
