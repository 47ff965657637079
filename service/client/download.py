"""An artifact onto this machine: streamed, resumed when the connection breaks, kept only if its digest is right."""

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

import httpx

from service.client.transport import Transport, pause
from service.errors import DigestMismatch

_BREAKS_IN_A_ROW = 5


def download(transport: Transport, path: str, digest: str, target: Path) -> int:
    """Write the bytes at `path` to `target` in one step at the end; returns their number.

    Raises DigestMismatch, and leaves what was at `target` as it was, if their sha256 is not `digest`.
    """
    with _atomic(target) as file:
        _fetch(transport, path, digest, file)
        file.seek(0)
        actual = hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest()
        if actual != digest:
            raise DigestMismatch(f"{path}: the bytes received have sha256 {actual}, not {digest}; nothing was written")
        return os.fstat(file.fileno()).st_size


def _fetch(transport: Transport, path: str, digest: str, file: IO[bytes]) -> None:
    breaks = 0
    while True:
        start = file.tell()
        try:
            _fetch_rest(transport, path, digest, file)
        except httpx.TransportError as error:
            breaks = 1 if file.tell() > start else breaks + 1
            if breaks == _BREAKS_IN_A_ROW:
                raise transport.unreachable(error) from error
            time.sleep(pause(breaks))
        else:
            return


def _fetch_rest(transport: Transport, path: str, digest: str, file: IO[bytes]) -> None:
    offset = file.tell()
    headers = {"Range": f"bytes={offset}-", "If-Range": f'"{digest}"'} if offset else {}
    with transport.stream(path, {**headers, "Accept-Encoding": "identity"}) as response:
        if response.status_code != httpx.codes.PARTIAL_CONTENT:
            file.seek(0)
            file.truncate()
        file.writelines(response.iter_raw())


@contextmanager
def _atomic(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file beside `target` that takes its name if the block ends well, and vanishes if not."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            yield file.file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o666 & ~_umask())
            Path(file.name).replace(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
