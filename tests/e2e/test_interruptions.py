"""A build whose service is stopped, or whose worker is killed, while it runs: it ends all the same, once."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.conftest import Running, finished, start
from tests.e2e.test_path import DIT_PROFILE, submit

pytestmark = pytest.mark.slow


def wait_for_stage(url: str, build: str, stage: str) -> dict[str, Any]:
    while True:
        record: dict[str, Any] = httpx.get(f"{url}/builds/{build}").json()
        if record["stage"] == stage:
            return record
        assert record["status"] in ("queued", "running"), record
        time.sleep(0.05)


def stop_all(running: Running) -> Running:
    assert running.stop() == 0
    return start(running.data_dir)


def kill_all(running: Running) -> Running:
    running.stop(signal.SIGKILL)
    return start(running.data_dir)


def kill_worker(running: Running) -> Running:
    [worker] = [child for child in psutil.Process(running.process.pid).children() if "worker" in child.cmdline()]
    os.killpg(worker.pid, signal.SIGKILL)
    return running


@pytest.mark.parametrize("interrupt", [stop_all, kill_all, kill_worker])
def test_an_interrupted_build_ends_all_the_same(
    tmp_path: Path, dit: Path, interrupt: Callable[[Running], Running]
) -> None:
    running = start(tmp_path)
    try:
        build = submit(running.url, dit, DIT_PROFILE).json()["id"]
        wait_for_stage(running.url, build, "checking")
        running = interrupt(running)
        record = finished(running.url, build)
        assert record["status"] == "succeeded", record["problem"]
        assert record["attempt"] == 2
        scratch = tmp_path / "store" / "tmp"
        assert [path for path in scratch.iterdir() if path.name.startswith(f"build-{build}.2")] == []
    finally:
        running.stop()
