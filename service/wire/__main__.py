"""The child that scans one upload under limits: a JSON request on stdin, a JSON answer on stdout."""

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from service.wire.refusal import WireError
from service.wire.scan import scan

_PR_SET_PDEATHSIG = 1


def main() -> None:
    request = json.load(sys.stdin)
    _die_with(request["parent"])
    _limit(request["memory_bytes"], request["cpu_seconds"])
    json.dump(_answer(Path(request["path"]), request["external"]), sys.stdout)


def _answer(path: Path, external: dict[str, int]) -> dict[str, Any]:
    try:
        return {"scan": scan(path, external)}
    except WireError as refused:
        return {"refused": {"slug": refused.slug, "detail": refused.detail, "extensions": refused.extensions}}
    except MemoryError:
        detail = "Scanning the file needs more memory than it may use. Simplify the graph and export it again."
        return {"refused": {"slug": "too-complex", "detail": detail, "extensions": {}}}


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the parent is gone")


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
