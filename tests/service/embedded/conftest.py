import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

Script = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    """Runs Python source as a process of its own (signals and deaths need one); kills it at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(source: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(source), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Waits (with patience) until a process is gone; a zombie that nobody has collected counts as gone."""

    def wait(pid: int) -> bool:
        for _ in range(300):
            if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
            time.sleep(0.1)
        return False

    return wait
