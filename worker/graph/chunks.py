"""The parts of a file that is being written: each is read, perhaps converted, and put where it belongs."""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from service.errors import ExternalDataRange
from worker.graph.kernel import Round, largest_bits
from worker.graph.payload import Payload
from worker.graph.weights import Conversion, clamp_finite

_NO_KERNEL_COPY = frozenset(
    {errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EPERM, errno.ETXTBSY}
)


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes that will be written from a payload, perhaps converted. `length` is what is written."""

    payload: Payload
    conversion: Conversion | None

    @property
    def length(self) -> int:
        return self.payload.length if self.conversion is None else self.payload.length // 4 * 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the file that is in place; `data` only if it is hashed."""

    count: int
    data: bytes | memoryview = b""
    converted: Source | None = None
    peak: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    fd: int
    hashed: bool

    def write(self, data: bytes | memoryview, places: Iterable[int]) -> Chunk:
        for at in places:
            _write_at(self.fd, data, at)
        return Chunk(len(data), data if self.hashed else b"")


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of the graph itself."""

    target: Target
    data: bytes
    at: int

    def run(self) -> Chunk:
        return self.target.write(self.data, (self.at,))


@dataclass(frozen=True, slots=True)
class Copy:
    """A chunk that stays as it is; the kernel copies it where nobody needs to see it."""

    target: Target
    payload: Payload
    source_fd: int
    start: int
    count: int
    places: tuple[int, ...]

    def run(self) -> Chunk:
        if not self.target.hashed and all(self._in_kernel(at) for at in self.places):
            return Chunk(self.count)
        return self.target.write(_read_at(self.source_fd, self.payload, self.start, self.count), self.places)

    def _in_kernel(self, at: int) -> bool:
        done, offset = 0, self.payload.offset + self.start
        while done < self.count:
            try:
                copied = os.copy_file_range(self.source_fd, self.target.fd, self.count - done, offset + done, at + done)
            except OSError as error:
                if error.errno in _NO_KERNEL_COPY:
                    return False
                raise
            if not copied:
                raise _shorter(self.payload)
            done += copied
        return True


@dataclass(frozen=True, slots=True)
class Convert:
    """A chunk that becomes half on the way."""

    target: Target
    source: Source
    conversion: Conversion
    source_fd: int
    start: int
    count: int
    places: tuple[int, ...]
    round: Round

    def run(self) -> Chunk:
        values = np.frombuffer(_read_at(self.source_fd, self.source.payload, self.start, self.count), "<f4")
        halves = self.round(values if self.conversion.limit is None else clamp_finite(values, self.conversion.limit))
        written = self.target.write(halves.view(np.uint8).data, self.places)
        return Chunk(written.count, written.data, self.source, largest_bits(halves))


@dataclass(frozen=True, slots=True)
class Again:
    """A chunk that was put in place with an earlier one of the same source; it is read back only to be hashed."""

    target: Target
    at: int
    count: int

    def run(self) -> Chunk:
        return Chunk(self.count, os.pread(self.target.fd, self.count, self.at) if self.target.hashed else b"")


Task = Bytes | Copy | Convert | Again


def _read_at(fd: int, payload: Payload, start: int, count: int) -> bytes:
    parts: list[bytes] = []
    done = 0
    while done < count:
        part = os.pread(fd, count - done, payload.offset + start + done)
        if not part:
            raise _shorter(payload)
        parts.append(part)
        done += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _shorter(payload: Payload) -> ExternalDataRange:
    return ExternalDataRange(f"{payload.path.name} became shorter while it was read")


def _write_at(fd: int, data: bytes | memoryview, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written
