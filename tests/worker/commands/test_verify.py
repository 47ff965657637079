"""`atoll verify` and `atoll diff` as they are typed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from service.cli.app import run

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (float[n, 4] x) => (float[n, 4] y) {{ {before} [square] s = Mul(h, h) [root] r = Sqrt(s) {after} }}"""


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    """A model and its conversion by hand, which overflows from |x| = 256 on."""
    parts = {
        "full.onnx": ("h = Identity(x)", "y = Identity(r)"),
        "half.onnx": ("h = Cast<to = 10>(x)", "y = Cast<to = 1>(r)"),
    }
    for name, (before, after) in parts.items():
        onnx.save(onnx.parser.parse_model(MODEL.format(before=before, after=after)), tmp_path / name)
    return tmp_path / "full.onnx", tmp_path / "half.onnx"


def large(folder: Path) -> Path:
    np.savez(folder / "large.npz", x=np.full((2, 4), 300, np.float32))
    return folder / "large.npz"


def test_verify_prints_the_figures_of_models_that_agree(
    models: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", *map(str, models), "--pessimistic"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("passed on generated inputs\n  with sums in half: passed\n  'y': cosine ")


def test_a_failure_leaves_stdout_to_the_problem(models: tuple[Path, Path]) -> None:
    text = models[0].with_name("text.onnx")
    text.write_text("dummy")
    arguments = [sys.executable, "-P", "-m", "service.cli", "verify", str(text), str(models[1]), "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["type"] == "urn:atoll:problem:not-onnx"
    assert done.stderr.startswith("atoll: ")
    assert done.stderr.count("\n") == 1


def test_verify_fails_on_samples_that_overflow_and_names_the_node(
    models: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    sample = large(models[0].parent)
    assert run(["verify", *map(str, models), "--samples", str(sample), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], verdict["inputs"], verdict["culprit"]["node"]) == ("failed", "samples", "square")


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ([], 0, "no tensor drifts by more than 0.01; the worst is of node"),
        (["--limit", "0.00001"], 1, "first: node 'Cast:h' (Cast) is off by"),
        (["--samples", "SAMPLE"], 1, "first: node 'square' (Mul) is inf or NaN, what it reads by 0"),
    ],
)
def test_diff_names_the_first_node_that_drifts(
    models: tuple[Path, Path], capsys: pytest.CaptureFixture[str], options: list[str], code: int, text: str
) -> None:
    given = [str(large(models[0].parent)) if option == "SAMPLE" else option for option in options]
    assert run(["diff", *map(str, models), *given]) == code
    assert text in capsys.readouterr().out


def test_a_model_is_equal_to_itself(models: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", str(models[0]), str(models[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"drifts": False, "first": None, "worst": None}


@pytest.mark.parametrize("command", ["verify", "diff"])
@pytest.mark.parametrize(
    ("name", "code", "text"), [("absent.npz", 2, "there is no such file"), ("full.onnx", 1, "neither an .npz archive")]
)
def test_samples_that_cannot_be_read_are_told(
    models: tuple[Path, Path], capsys: pytest.CaptureFixture[str], command: str, name: str, code: int, text: str
) -> None:
    assert run([command, *map(str, models), "--samples", str(models[0].parent / name)]) == code
    assert text in capsys.readouterr().err
