"""The commands that speak to a server, as a user runs them."""

import hashlib
import json
import signal
import socket
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.e2e.conftest import ATOLL, Running, atoll, without_settings
from worker.graph.index import build_index
from worker.graph.load import load
from worker.verify.inputs import generate, input_specs

pytestmark = pytest.mark.slow

PROFILE = ["--profile", "x=1x64x16:1x64x32:1x64x64", "--profile", "local_add_cond=1x65x16:1x65x32:1x65x64"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small transformer whose weights lie in a file beside it."""
    folder = tmp_path_factory.mktemp("model")
    assert atoll("example", "audio-dit", "--out", folder / "one.onnx", "--layers", "1", "--dim", "128").returncode == 0
    target = folder / "dit.onnx"
    onnx.save(onnx.load(folder / "one.onnx"), target, save_as_external_data=True, location="dit.data", size_threshold=0)
    return target


@pytest.fixture(scope="module")
def record(server: Running, model: Path) -> dict[str, dict[str, str]]:
    done = atoll("submit", model, *PROFILE, "--label", "team=audio", "--watch", "--json", "--server", server.url)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_submit_uploads_external_data_and_follows_to_the_end(record: dict[str, dict[str, str]]) -> None:
    assert record["status"] == "succeeded"
    assert record["spec"]["labels"] == {"team": "audio"}


def test_submitted_again_nothing_is_uploaded_or_built(
    server: Running, model: Path, record: dict[str, dict[str, str]]
) -> None:
    done = atoll("submit", model, *PROFILE, "--server", server.url)
    assert "already there" in done.stdout
    assert "already built" in done.stdout


def test_watch_shows_the_stages_and_the_proof(server: Running, record: dict[str, dict[str, str]]) -> None:
    done = atoll("watch", record["id"], "--server", server.url)
    assert done.returncode == 0
    for expected in ("converting", "publishing", f"succeeded: engine {record['engine']['digest']}", "verdict"):
        assert expected in done.stdout


@pytest.mark.parametrize("by", ["id", "digest"])
def test_download_is_verified(server: Running, record: dict[str, dict[str, str]], tmp_path: Path, by: str) -> None:
    digest = record["engine"]["digest"]
    source = record["id"] if by == "id" else digest
    done = atoll("download", source, "--out", tmp_path / "dit.engine", "--server", server.url)
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256((tmp_path / "dit.engine").read_bytes()).hexdigest() == digest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["download", "0" * 64], "0" * 64),
        (["watch", "01J0000000000000000000000"], "01J0000000000000000000000"),
    ],
)
def test_what_is_not_there_is_one_line(server: Running, arguments: list[str], says: str, tmp_path: Path) -> None:
    done = atoll(*arguments, "--server", server.url, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("atoll: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_profile_names_the_input(server: Running, model: Path) -> None:
    done = atoll("submit", model, "--server", server.url, "--json")
    assert done.returncode == 1
    problem = json.loads(done.stdout.splitlines()[-1])
    assert problem["type"] == "urn:atoll:problem:missing-profile"
    assert "local_add_cond" in problem["detail"]


def test_an_interrupted_command_ends_with_130() -> None:
    """It waits for a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen([ATOLL, "watch", "any", "--server", url], env=without_settings()) as process:
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            connection.close()


@pytest.fixture(scope="module")
def sample(model: Path) -> Path:
    index = build_index(load(model))
    shapes = {"x": (1, 64, 32), "local_add_cond": (1, 65, 32)}
    path = model.with_name("sample.npz")
    np.savez(path, **generate(input_specs(index), shapes, seed=7))
    return path


def test_submit_sends_samples_and_the_verdict_is_on_them(server: Running, model: Path, sample: Path) -> None:
    options = ["--samples", sample, "--output", "onnx", "--watch", "--json", "--server", server.url]
    done = atoll("submit", model, *PROFILE, *options)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["spec"]["accuracy"]["samples"] == [hashlib.sha256(sample.read_bytes()).hexdigest()]
    assert (record["proof"]["verdict"], record["proof"]["inputs"]) == ("passed", "samples")


def test_samples_for_another_model_are_refused(server: Running, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", nobody=np.ones(3, np.float32))
    done = atoll("submit", model, *PROFILE, "--samples", tmp_path / "other.npz", "--server", server.url)
    assert done.returncode == 1
    assert "accuracy.samples.0.nobody: the model has no such input" in done.stderr
