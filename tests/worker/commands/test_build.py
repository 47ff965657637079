import json
from pathlib import Path

import numpy as np
import pytest

from service.cli.app import run
from worker.graph.index import build_index
from worker.graph.load import load
from worker.verify.inputs import generate, input_specs

PROFILE = ["--profile", "x=1x64x8:1x64x16:1x64x32", "--profile", "local_add_cond=1x65x8:1x65x16:1x65x32"]


@pytest.fixture(scope="module")
def dit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "dit.onnx"
    assert run(["example", "audio-dit", "--out", str(path), "--layers", "1", "--dim", "128"]) == 0
    return path


@pytest.mark.slow
def test_one_command_makes_an_engine_and_its_evidence(
    dit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["build", str(dit), "--out", str(tmp_path / "dit.engine"), *PROFILE, "--arch", "sm_86", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert Path(said["engine"]).stat().st_size == said["size"]
    report = json.loads(Path(said["report"]).read_text())
    assert report["proof"] == said["proof"]
    assert said["proof"]["verdict"] == "passed"
    assert said["proof"]["fused_attentions"] == said["proof"]["attentions"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dit.engine", "dit.engine.report.json"]


@pytest.mark.slow
def test_mode_auto_builds_what_it_found(dit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    options = [*PROFILE, "--arch", "sm_86", "--mode", "auto", "--json"]
    assert run(["build", str(dit), "--out", str(tmp_path / "dit.engine"), *options]) == 0
    said = json.loads(capsys.readouterr().out)
    auto = json.loads(Path(said["report"]).read_text())["auto"]
    assert (auto["outcome"], said["proof"]["verdict"]) == ("met", "passed")
    assert auto["cost"] < auto["rope_cost"]
    assert said["proof"]["cosine"] == pytest.approx(auto["cosine"], abs=1e-6)


@pytest.mark.slow
def test_the_verdict_is_on_the_samples(dit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = generate(input_specs(build_index(load(dit))), {"x": (1, 64, 16), "local_add_cond": (1, 65, 16)}, seed=3)
    np.savez(tmp_path / "s.npz", **feed)
    capsys.readouterr()
    options = [*PROFILE, "--arch", "sm_86", "--json", "--samples", str(tmp_path / "s.npz")]
    assert run(["build", str(dit), "--out", str(tmp_path / "dit.engine"), *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["proof"]["verdict"], said["proof"]["inputs"]) == ("passed", "samples")
    assert json.loads(Path(said["report"]).read_text())["verification"]["ranges"]["tensors"] > 50


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give a range for dimension 2 (length) of input 'x'"),
        ([*PROFILE, "--arch", "sm_90"], "sm_90 cannot be built on this machine; there is tensorrt-rtx for portable"),
        ([*PROFILE, "--arch", "hopper"], "arch: Value error, 'hopper' is not an arch"),
        ([*PROFILE, "--toolchain", "tvm"], "toolchain: "),
        ([*PROFILE, "--optimization-level", "9"], "optimization_level: "),
        (["--preset", "no-such"], "There is no preset 'no-such'"),
        ([*PROFILE, "--samples", "absent.npz"], "absent.npz: there is no such file"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(
    options: list[str], says: str, dit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", str(dit), "--out", str(tmp_path / "dit.engine"), *options]) != 0
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_never_overwritten(dit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = dit.read_bytes()
    assert run(["build", str(dit), "--out", str(dit), *PROFILE]) == 2
    assert dit.read_bytes() == before
