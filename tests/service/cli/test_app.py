import json
import subprocess
import sys
from pathlib import Path

import pytest

from service import __version__
from service.cli.app import run


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"atoll {__version__}\n"


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: atoll" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["up", "api", "worker", "submit", "watch", "download", "convert", "build", "doctor"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"Usage: atoll {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "No such command 'nope'"),
        (["download"], "Missing argument"),
        (["convert", "x.onnx", "--out-dir", "o", "--mode", "best"], "'best' is not one of"),
        (["submit", "no-such.onnx"], "no-such.onnx: there is no such file"),
        (["submit", "no-such.onnx", "--label", "audio"], "write NAME=VALUE"),
        (["submit", "no-such.onnx", "--profile", "x=big"], "profile 'x=big'"),
        (["up", "--port", "70000"], "70000 is not a port"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_no_trace(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) != 0
    captured = capsys.readouterr()
    assert captured.err.startswith("atoll: ")
    assert captured.err.count("\n") == 1
    assert says in captured.err


def test_json_failures_are_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit", "no-such.onnx", "--json"]) == 2
    problem = json.loads(capsys.readouterr().out)
    assert problem["type"] == "urn:atoll:problem:command"
    assert "no-such.onnx" in problem["detail"]


def test_a_server_that_is_away_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "some-build", "--server", "http://127.0.0.1:1"]) == 1
    assert "no answer from http://127.0.0.1:1" in capsys.readouterr().err


def test_settings_that_do_not_fit_are_named_as_variables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATOLL_PORT", "eighty")
    assert run(["doctor"]) == 2
    assert "ATOLL_PORT: Input should be a valid integer" in capsys.readouterr().err


def test_help_loads_no_heavy_library() -> None:
    heavy = {"celery", "fastapi", "httpx", "numpy", "onnx", "onnxruntime", "redis", "uvicorn"}
    source = f"import sys; from service.cli.app import build_app; build_app(); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
