"""The least that any converter must do: read in chunks, round to half, write, fsync. Prints its seconds.

Its threads, chunks and rounding are those of our converter, and it hashes if ours does; it knows nothing of the graph,
and neither the start of the interpreter nor imports count.
"""

import hashlib
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from worker.graph.dtype import FP16
from worker.graph.kernel import Round, rounding

CHUNK_BYTES = 4 << 20
_AHEAD = 3


def convert_all(source: Path, target: Path, round_half: Round, *, hashed: bool) -> None:
    """Every byte of `source` taken for FP32, and written as FP16."""
    size, threads = source.stat().st_size // 4 * 4, os.cpu_count() or 1
    digest = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing, ThreadPoolExecutor(threads) as pool:
        os.truncate(writing.fileno(), size // 2)

        def one(start: int) -> memoryview:
            values = np.frombuffer(os.pread(reading.fileno(), min(CHUNK_BYTES, size - start), start), "<f4")
            half = round_half(values).view(np.uint8).data
            os.pwrite(writing.fileno(), half, start // 2)
            return half if hashed else half[:0]

        waiting: list[Future[memoryview]] = []
        for start in range(0, size, CHUNK_BYTES):
            waiting.append(pool.submit(one, start))
            if len(waiting) >= threads * _AHEAD:
                digest.update(waiting.pop(0).result())
        for future in waiting:
            digest.update(future.result())
        os.fsync(writing.fileno())


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    round_half = rounding(FP16, source.stat().st_size)
    started = time.perf_counter()
    convert_all(source, target, round_half, hashed="hashed" in sys.argv[3:])
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main()
