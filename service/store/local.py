"""The object store in a folder of a local (or POSIX network) file system with hard links."""

import errno
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from service import log
from service.errors import BlobNotFound, CorruptArtifact, DigestMismatch
from service.store import durable
from service.store.paths import BLOBS, check_digest, check_prefix, from_disk, on_disk
from service.store.types import Blob
from service.store.verified import VerifiedBlobs

__all__ = ["LocalBlobWriter", "LocalStore"]

_log = log.get(__name__)
_CHUNK = 1 << 20
_EMPTY = hashlib.sha256(b"").hexdigest()


class LocalStore:
    """An `ObjectStore` over the folder `root`; `tmp/` holds what is on its way in, `quarantine/` what was corrupt."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.tmp = self.root / "tmp"
        self._quarantine = self.root / "quarantine"
        self._lock = self.root / "lock"
        self._verified = VerifiedBlobs()
        with durable.write_errors():
            durable.make_folder(self.tmp)
            swept = durable.sweep(self.tmp)
        if swept:
            _log.info("swept temporary files of dead processes", action="store.swept", files=swept)

    def put(self, path: str, data: bytes) -> bool:
        if path.startswith(BLOBS):
            raise ValueError("a blob is named by its bytes: use new_blob or add_file")
        target = on_disk(self.root, path)
        with durable.write_errors():
            file, temporary = durable.open_temporary(self.tmp)
            try:
                durable.write_all(file, data)
                durable.sync_file(file)
                return durable.link_if_absent(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)
                file.close()

    def get(self, path: str) -> bytes | None:
        try:
            return on_disk(self.root, path).read_bytes()
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        return on_disk(self.root, path).is_file()

    def list(self, prefix: str) -> Iterator[str]:
        folder = self.root / check_prefix(prefix)
        return (from_disk(self.root, file) for file in _files(folder))

    def delete(self, path: str) -> bool:
        target = on_disk(self.root, path)
        with durable.write_errors(), durable.exclusive(self._lock):
            return durable.unlink_if_there(target)

    def new_blob(self) -> "LocalBlobWriter":
        return LocalBlobWriter(self)

    def add_file(self, path: Path, digest: str | None = None) -> Blob:
        with path.open("rb") as file, durable.write_errors():
            digest = digest or hashlib.file_digest(file, "sha256").hexdigest()
            durable.sync_file(file)
            size = os.fstat(file.fileno()).st_size
            try:
                stamp = self.publish(path, digest)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                stamp = self._copy(file, digest)
            path.unlink()
        return Blob(digest, size, stamp)

    def take_back(self, blob: Blob) -> bool:
        path = self._blob_path(blob.digest)
        with durable.write_errors(), durable.exclusive(self._lock):
            if blob.stamp is None or not path.exists() or path.stat().st_mtime_ns != blob.stamp:
                return False
            return durable.unlink_if_there(path)

    def blob(self, digest: str) -> Blob | None:
        path = self._blob_path(digest)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return None
        if size == 0 and digest != _EMPTY:
            self._set_aside(digest, path)
            return None
        return Blob(digest, size)

    def open_blob(self, digest: str) -> BinaryIO:
        try:
            return self.local_path(digest).open("rb")
        except FileNotFoundError:
            raise _not_found(digest) from None

    def local_path(self, digest: str) -> Path:
        path = self._blob_path(digest)
        try:
            sound = self._verified.check(digest, path)
        except FileNotFoundError:
            raise _not_found(digest) from None
        if sound:
            return path
        self._set_aside(digest, path)
        raise CorruptArtifact(
            f"The stored bytes of {digest} do not match their digest; they were set aside. Upload or build it again.",
            digest=digest,
        )

    def publish(self, temporary: Path, digest: str) -> int | None:
        """Give a finished file its name as a blob; the blob's stamp, if the name was free.

        A file that has the name already is kept if this process knows it to be right, else replaced by the new bytes,
        which are: so an upload heals whatever lies under its digest. Either way its time changes, so that whoever
        brought it first does not take it back from under the second.
        """
        target = self._blob_path(digest)
        stamp = temporary.stat().st_mtime_ns
        if durable.link_if_absent(temporary, target):
            self._verified.remember(digest, temporary)
            return stamp
        with durable.exclusive(self._lock):
            self._replace_unless_verified(temporary, target, digest)
            os.utime(target, ns=(now := time.time_ns(), now))
            self._verified.remember(digest, target)
        return None

    def _replace_unless_verified(self, temporary: Path, target: Path, digest: str) -> None:
        if target.exists() and self._verified.knows(digest, target):
            return
        twin = self.tmp / f"{digest}.part"
        twin.unlink(missing_ok=True)
        os.link(temporary, twin)
        twin.replace(target)
        durable.sync_folder(target.parent)

    def _copy(self, file: BinaryIO, digest: str) -> int | None:
        with self.new_blob() as writer:
            file.seek(0)
            while chunk := file.read(_CHUNK):
                writer.write(chunk)
            return writer.commit(digest).stamp

    def _blob_path(self, digest: str) -> Path:
        return on_disk(self.root, BLOBS + check_digest(digest))

    def _set_aside(self, digest: str, path: Path) -> None:
        """Move a corrupt blob away, unless an upload has healed it in the meantime."""
        with durable.write_errors(), durable.exclusive(self._lock):
            if not path.exists() or self._verified.check(digest, path):
                return
            durable.make_folder(self._quarantine)
            path.rename(self._quarantine / f"{digest}.{time.time_ns()}")
            durable.sync_folder(path.parent)
        _log.error("a corrupt blob was set aside", action="store.quarantined", digest=digest)


class LocalBlobWriter:
    """A blob on its way in: hashed while it is written, invisible until `commit`."""

    def __init__(self, store: LocalStore) -> None:
        self.size = 0
        self._store = store
        self._hash = hashlib.sha256()
        with durable.write_errors():
            self._file, self._path = durable.open_temporary(store.tmp)

    def write(self, data: bytes | memoryview) -> None:
        with durable.write_errors():
            durable.write_all(self._file, data)
        self._hash.update(data)
        self.size += len(data)

    def commit(self, expected_digest: str | None = None) -> Blob:
        digest = self._hash.hexdigest()
        if expected_digest is not None and digest != expected_digest:
            raise DigestMismatch(
                f"The {self.size} bytes that arrived have sha256 {digest}, but {expected_digest} was declared; "
                "send them again.",
                expected=expected_digest,
                actual=digest,
            )
        with durable.write_errors():
            durable.sync_file(self._file)
            stamp = self._store.publish(self._path, digest)
            self._path.unlink()
        return Blob(digest, self.size, stamp)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


def _not_found(digest: str) -> BlobNotFound:
    return BlobNotFound(f"There is no blob {digest} here; upload it.")


def _files(folder: Path) -> Iterator[Path]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            else:
                yield Path(entry.path)
