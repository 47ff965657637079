"""The scan of an upload, in a process of its own that may die of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import service
from service import log
from service.errors import AtollError, InvalidModel, TooComplex
from service.settings import Settings
from service.wire.file import error_of
from service.wire.types import ModelScan

_log = log.get(__name__)
_COMMAND = (sys.executable, "-S", "-P", "-m", "service.wire")
_SOURCE = str(Path(service.__file__).parent.parent)


def scan_in_child(path: Path, external: Mapping[str, int], settings: Settings) -> ModelScan:
    """Scan the file at `path` within `settings.scan_memory_bytes` and `scan_seconds` of CPU.

    `external` maps the location of each external-data file that was sent to its size in bytes.
    Raises the kinds of InvalidModel, also when the child crashes or reaches a limit.
    """
    request = {
        "path": str(path),
        "external": dict(external),
        "memory_bytes": settings.scan_memory_bytes,
        "cpu_seconds": settings.scan_seconds,
        "parent": os.getpid(),
    }
    answer = _ask(json.dumps(request), settings)
    if refused := answer.get("refused"):
        raise error_of(refused["slug"], refused["detail"], refused["extensions"])
    return ModelScan.model_validate(answer["scan"])


def _ask(request: str, settings: Settings) -> dict[str, Any]:
    environment = {"PYTHONPATH": _SOURCE, "LANG": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath)}
    try:
        done = subprocess.run(
            _COMMAND,
            input=request,
            env=environment,
            capture_output=True,
            text=True,
            timeout=3 * settings.scan_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_slow(settings) from None
    if done.returncode == 0:
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer
    raise _death(done, settings)


def _death(done: subprocess.CompletedProcess[str], settings: Settings) -> AtollError:
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return _too_slow(settings)
    _log.error("the scan died", action="wire.died", status=done.returncode, evidence=done.stderr[-2000:])
    return InvalidModel("Scanning the file failed in an unexpected way, so it is not accepted. Tell the operator.")


def _too_slow(settings: Settings) -> TooComplex:
    return TooComplex(
        f"Scanning the file takes more than the {settings.scan_seconds} s that it may. Simplify the graph.",
        seconds=settings.scan_seconds,
    )
