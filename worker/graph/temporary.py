"""Files under temporary names beside their targets, locked while their writers live."""

import fcntl
import os
import re
import secrets
from pathlib import Path

from service.store.durable import remove_if_dead, sync_folder

_TOKEN_BYTES = 8


class Temporary:
    """A new, empty file for `target`, hidden in the same folder. Whoever opens it closes it; unpublished, it is gone.

    The lock goes with the process, so that `sweep` can tell what the dead have left behind. It is of no use before it
    is held: a sweep in between removes the file, and then another one is made.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        while True:
            self._path = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.tmp")
            self.file = self._path.open("x+b")
            fcntl.flock(self.file, fcntl.LOCK_EX)
            if os.fstat(self.file.fileno()).st_nlink:
                return
            self.file.close()

    def publish(self) -> None:
        """Gives the file its name, for good."""
        self._path.replace(self._target)
        sync_folder(self._target.parent)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self.file.close()


def sweep(target: Path) -> None:
    """Removes what processes that were killed have left of the same target."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.tmp")
    for path in target.parent.iterdir() if target.parent.is_dir() else ():
        if pattern.fullmatch(path.name):
            remove_if_dead(path)
