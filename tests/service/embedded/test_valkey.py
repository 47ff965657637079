from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from service.embedded.process import Process
from service.embedded.valkey import EmbeddedValkey


def start(folder: Path) -> tuple[EmbeddedValkey, Process]:
    valkey = EmbeddedValkey.plan(folder)
    process = Process(valkey.spec(folder / "log"))
    while not valkey.ready():
        assert process.ending() is None
    return valkey, process


def test_it_keeps_what_was_written_over_a_restart(tmp_path: Path) -> None:
    valkey, process = start(tmp_path)
    redis.Redis.from_url(valkey.url).set("kept", "yes")
    process.stop()
    valkey, process = start(tmp_path)
    assert redis.Redis.from_url(valkey.url).get("kept") == b"yes"
    process.stop()


def test_it_never_evicts_and_lets_nobody_in_without_the_password(tmp_path: Path, gone: Callable[[int], bool]) -> None:
    valkey, process = start(tmp_path)
    client = redis.Redis.from_url(valkey.url)
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=valkey.port).ping()
    assert (tmp_path / "valkey.conf").stat().st_mode & 0o077 == 0
    process.stop()
    assert gone(process.pid)
