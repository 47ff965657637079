"""The child's side: one request on stdin, events and one answer as JSON lines on a private pipe.

    if __name__ == "__main__":
        serve(handler)

The pipe is private so that nothing which a library prints can be taken for an answer.
"""

import errno
import faulthandler
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from service.errors import AtollError, InsufficientStorage, ResourceLimit
from worker.child.confine import confine

Emit = Callable[[Mapping[str, Any]], None]
Handler = Callable[[dict[str, Any], Emit], Mapping[str, Any]]

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def serve(handler: Handler) -> None:
    """Answer the one request of this process and end it. Started by `run_child` only; does not return."""
    if len(sys.argv) != 3:
        sys.exit(f"{_module_name()} is a child process of atoll's worker; it is not started by hand.")
    reply_fd, parent = int(sys.argv[1]), int(sys.argv[2])
    confine(parent)
    faulthandler.enable()
    reply = _Reply(reply_fd)
    reply.send(_answer(handler, reply.emit))
    # No interpreter shutdown: a native library that crashes while it is unloaded must not spoil a finished answer.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Reply:
    """The writing end of the private pipe. Events may come from any thread."""

    def __init__(self, fd: int) -> None:
        self._pipe = open(fd, "wb", buffering=0)  # noqa: SIM115 -- it lives as long as the process
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        line = memoryview(json.dumps(message).encode() + b"\n")
        with self._lock:
            while line:
                line = line[self._pipe.write(line) :]

    def emit(self, event: Mapping[str, Any]) -> None:
        self.send({"event": event})


def _answer(handler: Handler, emit: Emit) -> dict[str, Any]:
    try:
        return {"result": handler(json.load(sys.stdin.buffer), emit)}
    except AtollError as error:
        return _problem(error)
    except Exception as error:
        traceback.print_exc()
        return _problem(_unexpected(error))


def _problem(error: AtollError) -> dict[str, Any]:
    return {"problem": error.problem().model_dump(mode="json")}


def _unexpected(error: Exception) -> AtollError:
    if isinstance(error, MemoryError):
        return ResourceLimit(f"The work asked for more memory than there is ({error}). Use a worker with more memory.")
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return InsufficientStorage(f"The worker's disk is full: {error}. Free some space and try again.")
    return AtollError(f"{type(error).__name__}: {error}", module=_module_name())


def _module_name() -> str:
    spec = sys.modules["__main__"].__spec__
    return spec.name.removesuffix(".__main__") if spec is not None else sys.argv[0]
