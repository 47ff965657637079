import json
from pathlib import Path

import onnx
import pytest

from service.cli.app import run
from tests.worker.precision.planned import parse, with_weights

NET = """
g (float[1,8,64] x) => (float[] y) <float hot = {300}> {
    h = MatMul(x, w) p = Softmax<axis = -1>(h) a = MatMul(p, w) b = Mul(a, hot)
    n = RMSNormalization<axis = -1>(b, gamma) y = MatMul(n, w)
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(with_weights(parse(NET, opset=23, ir_version=10), {"w": (64, 64), "gamma": (64,)}), path)
    return path


def convert(model: Path, folder: Path, *options: str) -> int:
    return run(["convert", str(model), "--out-dir", str(folder), *options])


def test_a_recipe_is_written_and_gives_the_same_bytes(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "found.json"
    assert convert(model, tmp_path / "a", "--mode", "auto", "--recipe", str(recipe), "--target-cosine", "0.99") == 0
    assert "auto          met: " in capsys.readouterr().out
    assert json.loads(recipe.read_text())["keep_trunk"]
    assert convert(model, tmp_path / "b", "--recipe", str(recipe)) == 0
    assert (tmp_path / "a" / "net.onnx").read_bytes() == (tmp_path / "b" / "net.onnx").read_bytes()
    report = json.loads((tmp_path / "a" / "net.report.json").read_text())
    assert report["auto"]["recipe"] == json.loads(recipe.read_text())


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (None, [], "No such file or directory"),
        ("dummy", [], "is no recipe: the file: Invalid JSON"),
        ('{"mode": "rope"}', [], "is no recipe: trunk: Field required"),
        ('{"mode": "best", "trunk": "fp16", "bounded_attention": true}', [], "'best' is not a valid Mode"),
        ("{}", ["--mode", "full", "--keep-fp32", "h"], "decides about --mode, --keep-fp32"),
        ("{}", ["--no-bounded-attention"], "decides about --no-bounded-attention"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_told(
    text: str | None, options: list[str], told: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.json"
    if text is not None:
        recipe.write_text(text)
    assert convert(model, tmp_path / "out", "--recipe", str(recipe), *options) == 2
    assert told in capsys.readouterr().err


def test_one_file_holds_one_recipe(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(model.read_bytes())
    options = ["--mode", "auto", "--recipe", str(tmp_path / "found.json")]
    assert run(["convert", str(model), str(other), "--out-dir", str(tmp_path / "out"), *options]) == 2
    assert "the recipe of one model only" in capsys.readouterr().err
