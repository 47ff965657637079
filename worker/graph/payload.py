"""Weights as lazy references: where a tensor's bytes lie in a file, read in chunks only when somebody needs them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from service.errors import ExternalDataMissing, ExternalDataPath, ExternalDataRange

CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Payload:
    """Little-endian tensor bytes: `length` bytes at `offset` of the file `path`."""

    path: Path
    offset: int
    length: int

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The bytes in order, `size` at a time. Raises ExternalDataRange if the file is too short."""
        with self.path.open("rb") as file:
            done = 0
            while done < self.length:
                data = os.pread(file.fileno(), min(size, self.length - done), self.offset + done)
                if not data:
                    raise ExternalDataRange(
                        f"{self.path.name} ends at byte {self.offset + done}, but a tensor needs "
                        f"{self.length} bytes from byte {self.offset} on"
                    )
                done += len(data)
                yield data

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def slices(self, starts: Iterable[int], length: int) -> bytes:
        """`length` bytes from each of the starts (counted from the payload's own), one after the other."""
        with self.path.open("rb") as file:
            return b"".join(os.pread(file.fileno(), length, self.offset + start) for start in starts)


def external_payload(folder: Path, location: str, offset: int, length: int | None, nbytes: int, tensor: str) -> Payload:
    """The reference for an external-data entry, confined to the model's folder.

    Raises ExternalDataPath, ExternalDataMissing or ExternalDataRange, each naming the tensor.
    """
    parts = Path(location).parts
    if not location or "\0" in location or "\\" in location or Path(location).is_absolute() or ".." in parts:
        raise ExternalDataPath(
            f"tensor {tensor!r} points to {location!r}; only paths inside the model's folder are allowed"
        )
    path = folder.joinpath(*parts)
    if not path.is_file():
        raise ExternalDataMissing(f"tensor {tensor!r} needs the external-data file {location!r}, which is not there")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ExternalDataPath(f"tensor {tensor!r} points to {location!r}, a link that leaves the model's folder")
    size = path.stat().st_size
    length = nbytes if length is None else length
    if offset < 0 or length < nbytes or offset + nbytes > size:
        raise ExternalDataRange(
            f"tensor {tensor!r} needs {nbytes} bytes from byte {offset} of {location!r}, which has {size} bytes"
        )
    return Payload(path, offset, nbytes)
