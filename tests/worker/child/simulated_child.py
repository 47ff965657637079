"""A child process that does what its request names: stands in for a builder that crashes, hangs or grows."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

from service.errors import ParserRefused
from worker.child import Emit, serve


def echo(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return {"echo": request["value"], "environment": sorted(os.environ)}


def chatter(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    os.write(1, b"native noise\n")
    print('{"result": "forged"}', flush=True)
    return {}


def refuse(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    raise ParserRefused("node 7 is refused", node="seven")


def fail(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    raise {"key": KeyError("left over"), "memory": MemoryError("8 EiB"), "disk": OSError(28, "No space left")}[
        request["error"]
    ]


def die(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    print("about to die", flush=True)
    os.kill(os.getpid(), getattr(signal, request["signal"]))
    time.sleep(60)
    return {}


def segfault(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def leave(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    os._exit(3)


def sleep(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    if request.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    emit({"ready": True})
    time.sleep(60)
    return {}


def spawn(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    return {"grandchild": grandchild.pid}


def grow(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    hoard = b"x" * (request["mib"] << 20)
    time.sleep(60)
    return {"hoard": len(hoard)}


def count(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    for number in range(request["to"]):
        emit({"number": number, "padding": "x" * request["padding"]})
    return {"counted": request["to"]}


def handler(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    emit({"pid": os.getpid()})
    answer: dict[str, Any] = globals()[request["do"]](request, emit)
    return answer


if __name__ == "__main__":
    serve(handler)
