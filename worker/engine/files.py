"""Engines as files: whole or not there."""

import os
from pathlib import Path

from service.store.durable import sync_folder
from worker.engine.trt import HostMemory

WRITE_BYTES = 16 << 20


def partial_of(target: Path) -> Path:
    """Where an engine is written before it has its name."""
    return target.with_name(f".{target.name}.partial")


def write_engine(plan: HostMemory, target: Path) -> int:
    """From the builder's memory to the file, without a second copy in memory; returns the size in bytes.

    The name appears when all is on disk. Raises OSError as the disk does.
    """
    partial = partial_of(target)
    view = memoryview(plan).cast("B")
    with partial.open("wb") as file:
        for start in range(0, len(view), WRITE_BYTES):
            file.write(view[start : start + WRITE_BYTES])
        file.flush()
        os.fsync(file.fileno())
    partial.replace(target)
    sync_folder(target.parent)
    return len(view)
