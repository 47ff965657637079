"""Writes the pieces of a file in parallel: each knows its place, so no thread waits for another.

Memory is a few chunks a thread, whatever the size of the model: weights are read by `pread`, as pages of a mapping
that were touched would count as resident.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.errors import ExternalDataRange
from worker.graph.payload import Payload
from worker.graph.weights import Conversion

CHUNK_BYTES = 4 << 20
_MAGNITUDE_BITS = 0x7FFF


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes that will be written from a payload, perhaps converted. `length` is what is written."""

    payload: Payload
    conversion: Conversion | None

    @property
    def length(self) -> int:
        return self.payload.length if self.conversion is None else self.payload.length // 4 * 2


Piece = bytes | Source
Peaks = dict[Source, int]
"""The largest magnitude that a conversion gave, as the bits of the half value without its sign."""


def length_of(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.length


def write_pieces(target: Path, pieces: list[Piece], threads: int | None = None) -> Peaks:
    """Makes `target` of the pieces, one after the other, and fsyncs it. Same bytes for any number of threads.

    Raises OSError when it cannot be written, ExternalDataRange when a payload is cut short.
    """
    total = sum(map(length_of, pieces))
    peaks: Peaks = {}
    with ExitStack() as stack:
        file = stack.enter_context(target.open("wb"))
        os.truncate(file.fileno(), total)
        sources = {piece.payload.path for piece in pieces if not isinstance(piece, bytes)}
        opened = {path: stack.enter_context(path.open("rb")).fileno() for path in sorted(sources)}
        pool = stack.enter_context(ThreadPoolExecutor(threads or os.cpu_count() or 1))
        tasks = _tasks(pieces, opened, file.fileno())
        for source, peak in pool.map(_Task.run, tasks):
            if source is not None and source.conversion is not None:
                peaks[source] = max(peaks.get(source, 0), peak)
        os.fsync(file.fileno())
    return peaks


@dataclass(frozen=True, slots=True)
class _Task:
    """One chunk: from where it is read to where it is written."""

    piece: Piece
    source_fd: int
    target_fd: int
    start: int
    count: int
    at: int

    def run(self) -> tuple[Source | None, int]:
        if isinstance(self.piece, bytes):
            _write_at(self.target_fd, self.piece, self.at)
            return None, 0
        payload, conversion = self.piece.payload, self.piece.conversion
        data = _read_at(self.source_fd, payload, self.start, self.count)
        if conversion is None:
            _write_at(self.target_fd, data, self.at)
            return self.piece, 0
        half = conversion.apply(np.frombuffer(data, "<f4"))
        _write_at(self.target_fd, half.tobytes(), self.at)
        return self.piece, int((half.view(np.uint16) & _MAGNITUDE_BITS).max(initial=0))


def _tasks(pieces: list[Piece], opened: dict[Path, int], target_fd: int) -> Iterator[_Task]:
    at = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            if piece:
                yield _Task(piece, -1, target_fd, 0, len(piece), at)
        else:
            shrink = 1 if piece.conversion is None else 2
            for start in range(0, piece.payload.length, CHUNK_BYTES):
                count = min(CHUNK_BYTES, piece.payload.length - start)
                yield _Task(piece, opened[piece.payload.path], target_fd, start, count, at + start // shrink)
        at += length_of(piece)


def _read_at(fd: int, payload: Payload, start: int, count: int) -> bytes:
    parts: list[bytes] = []
    done = 0
    while done < count:
        part = os.pread(fd, count - done, payload.offset + start + done)
        if not part:
            raise ExternalDataRange(f"{payload.path.name} became shorter while it was read")
        parts.append(part)
        done += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _write_at(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written
