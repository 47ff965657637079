import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from service.demo.models import audio_dit, ocr_model

ATOLL = Path(sys.executable).with_name("atoll")
CACHE = Path(__file__).parents[2] / ".demo" / "cache"


@dataclass(frozen=True)
class Running:
    """An `atoll up` that is ready."""

    url: str
    data_dir: Path
    process: "subprocess.Popen[str]"

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def start(data_dir: Path) -> Running:
    process = subprocess.Popen(
        [ATOLL, "up", "--port", "0", "--data-dir", data_dir, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=without_settings(),
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"`atoll up` ended with {process.wait()}; see {data_dir}/logs"
    return Running(json.loads(line)["url"], data_dir, process)


@contextmanager
def up(data_dir: Path) -> Iterator[Running]:
    running = start(data_dir)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
        if running.process.stdout is not None:
            running.process.stdout.close()


def without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ATOLL_")}


def atoll(*arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user does."""
    return subprocess.run(
        [ATOLL, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd, env=without_settings()
    )


def finished(url: str, build: str) -> dict[str, Any]:
    """The record of a build when it has ended, by polling as a dashboard does."""
    while True:
        record: dict[str, Any] = httpx.get(f"{url}/builds/{build}", params={"wait": 20}, timeout=60).json()
        if record["status"] in ("succeeded", "failed", "cancelled"):
            return record


def all_gone(processes: list[psutil.Process]) -> bool:
    """Waits (with patience) until none of them runs."""
    for _ in range(300):
        if not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes):
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="session")
def cache() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE


@pytest.fixture(scope="session")
def ocr(cache: Path) -> Path:
    return ocr_model(cache)


@pytest.fixture(scope="session")
def dit(cache: Path) -> Path:
    return audio_dit(cache)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with up(tmp_path_factory.mktemp("atoll")) as running:
        yield running
