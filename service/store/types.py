"""What an object store promises: immutable facts put if absent, and blobs named by the digest of their bytes.

Layout of the paths (all relative, `/`-separated):

    blobs/<sha256>  models/<id>  engines/<digest>  keys/<key>  pending/<id>  settings/…
    builds/<id>/accepted  builds/<id>/attempts/<n>  builds/<id>/cancel-requested  builds/<id>/finished
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that are stored for good: lower-case hex sha256 and size in bytes.

    `stamp` tells which writing brought them here; None when they were here before, or where the store cannot tell.
    """

    digest: str
    size: int
    stamp: int | None = field(default=None, compare=False)


class BlobWriter(Protocol):
    """Bytes on their way in. Leaving the `with` block without `commit` leaves nothing behind."""

    size: int

    def write(self, data: bytes | memoryview) -> None: ...

    def commit(self, expected_digest: str | None = None) -> Blob:
        """Make the bytes durable under their digest. Raises DigestMismatch (nothing is stored) if it is another."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ObjectStore(Protocol):
    """Facts and blobs. Errors: InsufficientStorage when full, Unavailable when away, CorruptArtifact on bad bytes."""

    def put(self, path: str, data: bytes) -> bool:
        """Store a fact durably if there is none at `path`; False if there already was (it stays as it is)."""
        ...

    def get(self, path: str) -> bytes | None: ...

    def exists(self, path: str) -> bool: ...

    def list(self, prefix: str) -> Iterator[str]:
        """Paths of the facts under the folder `prefix` (which ends with `/`), in no particular order."""
        ...

    def delete(self, path: str) -> bool: ...

    def new_blob(self) -> BlobWriter: ...

    def add_file(self, path: Path, digest: str | None = None) -> Blob:
        """Take over a finished local file as a blob (moved where possible; hashed unless its digest is known)."""
        ...

    def take_back(self, blob: Blob) -> bool:
        """Remove a blob that `blob`'s own writing brought here, unless somebody has stored the same bytes since."""
        ...

    def blob(self, digest: str) -> Blob | None: ...

    def open_blob(self, digest: str) -> BinaryIO:
        """Raises BlobNotFound."""
        ...

    def local_path(self, digest: str) -> Path:
        """A local, read-only file with the blob's bytes (an S3 store downloads it first). Raises BlobNotFound."""
        ...
