"""Limits on a child that its parent watches: each answers the error to raise once it is passed."""

import contextlib
import time
from collections.abc import Callable

import psutil

from service.errors import AtollError, ChildStopped, ChildTimeout, ResourceLimit

# Looking at a process tree reads all of /proc.
MEMORY_CHECK_SECONDS = 0.25

Limit = Callable[[], AtollError | None]


def stop_limit(module: str, should_stop: Callable[[], bool]) -> Limit:
    return lambda: ChildStopped(f"{module} was stopped on request.", module=module) if should_stop() else None


def time_limit(module: str, timeout: float) -> Limit:
    end = time.monotonic() + timeout

    def check() -> AtollError | None:
        if time.monotonic() < end:
            return None
        detail = f"{module} did not finish within {timeout:g} s. Allow more time, or make the work smaller."
        return ChildTimeout(detail, module=module, timeout_seconds=timeout)

    return check


def memory_limit(module: str, pid: int, memory_bytes: int) -> Limit:
    next_check = 0.0

    def check() -> AtollError | None:
        nonlocal next_check
        if time.monotonic() < next_check:
            return None
        next_check = time.monotonic() + MEMORY_CHECK_SECONDS
        used = _resident_bytes(pid)
        if used <= memory_bytes:
            return None
        detail = (
            f"{module} used {used >> 20} MiB of memory; {memory_bytes >> 20} MiB are allowed. "
            "Use a worker with more memory, or make the model or its largest shapes smaller."
        )
        return ResourceLimit(detail, module=module, used_bytes=used, limit_bytes=memory_bytes)

    return check


def _resident_bytes(pid: int) -> int:
    """Resident memory of a process and its descendants, as far as they still exist."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total
