"""Writes the pieces of a file in parallel: each knows its place, so no thread waits for another.

Memory is a few chunks a thread, whatever the size of the model: weights are read by `pread`, as pages of a mapping
that were touched would count as resident. The calling thread follows in the order of the file, and hashes.
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from worker.graph.chunks import Again, Bytes, Chunk, Convert, Copy, Source, Target, Task
from worker.graph.dtype import HalfType
from worker.graph.kernel import Round, rounding

CHUNK_BYTES = 4 << 20
_AHEAD = 3
"""Chunks a thread that may wait for the calling thread."""

Piece = bytes | Source
Peaks = dict[Source, int]
"""The largest magnitude that a conversion gave, as the bits of the half value without its sign."""

OnBytes = Callable[[int, int], None]
"""Told, now and then, how many bytes of a file are written, and of how many."""


def unheard(_done: int, _total: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was learnt on the way. `digest` is the file's sha256, if it was asked for."""

    peaks: Peaks
    digest: str | None


def length_of(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.length


def write_pieces(
    file: BinaryIO,
    pieces: list[Piece],
    *,
    threads: int | None = None,
    hashed: bool = False,
    on_bytes: OnBytes = unheard,
) -> Written:
    """Makes the empty `file` of the pieces, one after the other, and fsyncs it. Same bytes for any number of threads.

    A source that occurs several times is read and converted once.
    Raises OSError when it cannot be written, ExternalDataRange when a payload is cut short.
    """
    total, done = sum(map(length_of, pieces)), 0
    peaks: Peaks = {}
    digest = hashlib.sha256() if hashed else None
    threads = threads or os.cpu_count() or 1
    with ExitStack() as stack:
        os.truncate(file.fileno(), total)
        sources = {piece.payload.path for piece in pieces if not isinstance(piece, bytes)}
        opened = {path: stack.enter_context(path.open("rb")).fileno() for path in sorted(sources)}
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        for chunk in _in_order(pool, _tasks(pieces, opened, file.fileno(), hashed), threads * _AHEAD):
            if digest is not None:
                digest.update(chunk.data)
            if chunk.converted is not None:
                peaks[chunk.converted] = max(peaks.get(chunk.converted, 0), chunk.peak)
            done += chunk.count
            on_bytes(done, total)
        os.fsync(file.fileno())
    return Written(peaks, digest.hexdigest() if digest is not None else None)


def _in_order(pool: ThreadPoolExecutor, tasks: Iterable[Task], ahead: int) -> Iterator[Chunk]:
    """Results in the order of the file, with a bounded number of them in memory."""
    waiting: deque[Callable[[], Chunk]] = deque()
    for task in tasks:
        waiting.append(task.run if isinstance(task, Again) else pool.submit(task.run).result)
        if len(waiting) >= ahead:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def _tasks(pieces: list[Piece], opened: Mapping[Path, int], fd: int, hashed: bool) -> Iterator[Task]:
    target, rounds = Target(fd, hashed), _rounds(pieces)
    places = _places(pieces)
    at = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            if piece:
                yield Bytes(target, piece, at)
        elif places[piece][0] == at:
            yield from _chunks(target, piece, opened[piece.payload.path], places[piece], rounds)
        else:
            yield from (Again(target, at + start, count) for start, count in _cut(piece.length))
        at += length_of(piece)


def _chunks(
    target: Target, source: Source, fd: int, places: list[int], rounds: Mapping[HalfType, Round]
) -> Iterator[Task]:
    payload, conversion = source.payload, source.conversion
    for start, count in _cut(payload.length):
        if conversion is None:
            yield Copy(target, payload, fd, start, count, tuple(at + start for at in places))
        else:
            there = tuple(at + start // 2 for at in places)
            yield Convert(target, source, conversion, fd, start, count, there, rounds[conversion.half])


def _places(pieces: list[Piece]) -> dict[Source, list[int]]:
    """Where each source goes; several places for tied weights in one file. An empty source has one place."""
    places: dict[Source, list[int]] = {}
    at = 0
    for piece in pieces:
        if not isinstance(piece, bytes):
            places.setdefault(piece, []).append(at)
        at += length_of(piece)
    return places


def _rounds(pieces: list[Piece]) -> dict[HalfType, Round]:
    """How each half type is rounded to, by how much there is of it."""
    sizes: dict[HalfType, int] = {}
    for piece in pieces:
        if not isinstance(piece, bytes) and piece.conversion is not None:
            half = piece.conversion.half
            sizes[half] = sizes.get(half, 0) + piece.payload.length
    return {half: rounding(half, size) for half, size in sizes.items()}


def _cut(length: int) -> Iterator[tuple[int, int]]:
    return ((start, min(CHUNK_BYTES, length - start)) for start in range(0, length, CHUNK_BYTES))
