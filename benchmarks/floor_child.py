"""The least that any converter must do: read in chunks, round to half, write, fsync.

Prints its seconds, by the clock and of all cores. Threads, chunks and rounding are those of our converter, and it
hashes if ours does. It knows nothing of the graph: where the weights lie is found before the clock starts, and neither
the start of the interpreter nor imports count.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from worker.graph.dtype import FP16
from worker.graph.kernel import Round, rounding
from worker.graph.load import load
from worker.graph.payload import Payload

CHUNK_BYTES = 4 << 20
_AHEAD = 3


def convert_all(weights: Sequence[Payload], target: Path, round_half: Round, *, hashed: bool) -> None:
    """All weights as FP16, one after the other."""
    threads, digest = os.cpu_count() or 1, hashlib.sha256()
    with ExitStack() as stack:
        opened = {path: stack.enter_context(path.open("rb")).fileno() for path in {one.path for one in weights}}
        writing = stack.enter_context(target.open("wb")).fileno()
        pool = stack.enter_context(ThreadPoolExecutor(threads))

        def convert(chunk: Payload, at: int) -> memoryview:
            values = np.frombuffer(os.pread(opened[chunk.path], chunk.length, chunk.offset), "<f4")
            half = round_half(values).view(np.uint8).data
            os.pwrite(writing, half, at)
            return half if hashed else half[:0]

        waiting: list[Future[memoryview]] = []
        for chunk, at in _chunks(weights):
            waiting.append(pool.submit(convert, chunk, at))
            if len(waiting) >= threads * _AHEAD:
                digest.update(waiting.pop(0).result())
        for future in waiting:
            digest.update(future.result())
        os.fsync(writing)


def _chunks(weights: Sequence[Payload]) -> Iterator[tuple[Payload, int]]:
    """Parts of the weights, each with its place in the file that is written."""
    at = 0
    for weight in weights:
        for start in range(0, weight.length, CHUNK_BYTES):
            length = min(CHUNK_BYTES, weight.length - start)
            yield Payload(weight.path, weight.offset + start, length), at
            at += length // 2


def main() -> None:
    source, target, *flags = sys.argv[1:]
    weights = list(load(Path(source)).payloads.values())
    round_half = rounding(FP16, sum(weight.length for weight in weights))
    started, computed = time.perf_counter(), time.process_time()
    convert_all(weights, Path(target), round_half, hashed="hashed" in flags)
    print(time.perf_counter() - started, time.process_time() - computed)


if __name__ == "__main__":
    main()
