from pathlib import Path

import onnx
import pytest

from service.cli.app import run


def test_the_example_is_a_valid_model(tmp_path: Path) -> None:
    assert run(["example", "audio-dit", "--out", str(tmp_path / "dit.onnx"), "--layers", "1", "--dim", "64"]) == 0
    onnx.checker.check_model(tmp_path / "dit.onnx", full_check=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--dim", "100"], "--dim 100 is not a multiple of 64"), (["--exporter", "keras"], "--exporter 'keras'")],
)
def test_sizes_that_do_not_fit_are_refused(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["example", "audio-dit", "--out", str(tmp_path / "dit.onnx"), *arguments]) == 2
    assert says in capsys.readouterr().err
