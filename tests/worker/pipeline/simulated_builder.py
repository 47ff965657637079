"""A SIMULATED engine builder, for tests of a build's life: it builds nothing. The child in place of `worker.engine`.

`toolchain_options` of the spec say what it does: `runs` is a file that gets a line a run; `seconds` is how long it
takes; with `crash` it aborts always, with `succeed_in_run: n` before the n-th run.
"""

import os
import time
from pathlib import Path
from typing import Any

from worker.child import Emit, serve


def answer(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    if "parse" in request:
        return {"layers": 1, "inputs": [], "outputs": [], "tensor_dtypes": {"float": 1}, "messages": []}
    return _build(request["build"], emit)


def _build(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    options = request["options"]
    _record(options)
    if options.get("crash") or _runs(options) < options.get("succeed_in_run", 0):
        os.abort()
    end = time.monotonic() + options.get("seconds", 0)
    while time.monotonic() < end:
        emit({"event": "progress", "phase": "simulated", "step": 1, "of": 2})
        time.sleep(0.05)
    Path(request["target"]).write_bytes(b"simulated engine " + os.urandom(8))
    return _result(request)


def _record(options: dict[str, Any]) -> None:
    """One line a run, so that a test can count them."""
    with Path(options["runs"]).open("a") as file:
        file.write(f"{os.getpid()}\n")


def _runs(options: dict[str, Any]) -> int:
    return len(Path(options["runs"]).read_text().splitlines())


def _result(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": request["target"],
        "size": Path(request["target"]).stat().st_size,
        "toolchain": request["toolchain"],
        "toolchain_version": "simulated",
        "platform": "linux-x86_64",
        "arch": request["arch"],
        "seconds": 0.0,
        "peak_rss": 0,
        "profiles": 0,
        "fused_attentions": None,
    }


if __name__ == "__main__":
    serve(answer)
