import json
from pathlib import Path

import pytest

from service.cli.app import run
from service.embedded.process import Process
from service.embedded.valkey import EmbeddedValkey


def health(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in json.loads(capsys.readouterr().out)}


def test_it_sees_the_toolchain_and_says_what_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    checks = health(capsys)
    assert checks["tensorrt-rtx"]["health"] == "ok"
    assert "portable" in checks["tensorrt-rtx"]["detail"]
    assert checks["tensorrt"]["health"] == "absent"
    assert "pip install" in checks["tensorrt"]["cure"]


@pytest.mark.parametrize(("policy", "expected", "code"), [("noeviction", "ok", 0), ("allkeys-lru", "broken", 1)])
def test_a_broker_that_evicts_is_broken(
    policy: str,
    expected: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import redis

    valkey = EmbeddedValkey.plan(tmp_path)
    process = Process(valkey.spec(tmp_path / "log"))
    while not valkey.ready():
        assert process.ending() is None
    redis.Redis.from_url(valkey.url).config_set("maxmemory-policy", policy)
    monkeypatch.setenv("ATOLL_REDIS_URL", valkey.url)
    assert run(["doctor", "--json"]) == code
    broker = health(capsys)["broker"]
    process.stop()
    assert broker["health"] == expected
    assert valkey.password not in broker["detail"]
