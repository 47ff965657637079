"""`atoll up` comes, goes, and leaves nothing running."""

import os
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.conftest import Running, all_gone, atoll, start, up

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_of_it(tmp_path: Path, number: signal.Signals) -> None:
    running = start(tmp_path)
    family = running.family()
    assert len(family) >= 3
    assert running.stop(number) == 0
    assert all_gone(family)


def test_even_a_killed_up_leaves_nothing_and_can_be_started_again(tmp_path: Path) -> None:
    running = start(tmp_path)
    family = running.family()
    running.stop(signal.SIGKILL)
    assert all_gone(family)
    with up(tmp_path) as again:
        assert httpx.get(f"{again.url}/healthz").status_code == 200


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Running:
    with up(tmp_path_factory.mktemp("atoll")) as service:
        yield service  # type: ignore[misc]


def test_a_second_up_over_the_same_folder_is_refused(running: Running) -> None:
    refused = atoll("up", "--port", "0", "--data-dir", running.data_dir)
    assert refused.returncode == 2
    assert f"another `atoll up` (pid {running.process.pid}) uses {running.data_dir}" in refused.stderr


def test_a_port_in_use_is_refused(running: Running, tmp_path: Path) -> None:
    port = running.url.rpartition(":")[2]
    refused = atoll("up", "--port", port, "--data-dir", tmp_path)
    assert refused.returncode == 2
    assert f"port {port} on 127.0.0.1 is in use" in refused.stderr


@pytest.mark.parametrize("part", ["api", "worker", "valkey-server"])
def test_a_part_that_dies_comes_back(running: Running, part: str) -> None:
    [dead] = [child for child in psutil.Process(running.process.pid).children() if part in " ".join(child.cmdline())]
    dead.kill()
    assert all_gone([dead])
    while True:
        workers = httpx.get(f"{running.url}/workers", timeout=30)
        if workers.status_code == 200 and _alive(workers.json()["items"], dead.pid):
            return
        time.sleep(0.2)


def _alive(workers: list[dict[str, int]], dead: int) -> bool:
    return any(worker["pid"] != dead and psutil.pid_exists(worker["pid"]) for worker in workers)


def test_the_store_belongs_to_its_user_alone_in_name_of_the_password(running: Running) -> None:
    config = running.data_dir / "valkey" / "valkey.conf"
    assert config.stat().st_mode & 0o077 == 0
    assert config.stat().st_uid == os.getuid()
