"""`atoll explain` as it is typed."""

import json
from pathlib import Path

import onnx
import pytest

from service.cli.app import run

WEIGHTS = ",".join(["0.5"] * 64)
ROUTER = f"""
<ir_version: 8, opset_import: ["" : 17]>
router (float[N, 8] x) => (float[N, 8] y)
<float[8, 8] w = {{{WEIGHTS}}}>
{{
    [logits] h = MatMul(x, w)
    [gate] y = Softmax <axis = -1> (h)
}}
"""


@pytest.fixture
def router(tmp_path: Path) -> Path:
    path = tmp_path / "router.onnx"
    onnx.save(onnx.parser.parse_model(ROUTER), path)
    return path


def test_without_a_node_the_whole_plan_is_shown(router: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(router)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mode rope, trunk fp16, attention bounded, opset 17\n")
    assert "softmax: 1 island, 1 node" in out
    assert list(router.parent.iterdir()) == [router]


def test_with_a_node_it_is_explained(router: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(router), "gate"]) == 0
    out = capsys.readouterr().out
    assert "fp32, because of: island" in out
    assert "--keep-trunk gate -> fp16" in out


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ([], "fp32"),
        (["--keep-trunk", "gate"], "fp16"),
        (["--trunk", "bf16", "--keep-trunk", "gate"], "bf16"),
        (["--mode", "none"], "fp32"),
    ],
)
def test_options_are_those_of_convert(
    router: Path, capsys: pytest.CaptureFixture[str], options: list[str], dtype: str
) -> None:
    assert run(["explain", str(router), "gate", "--json", *options]) == 0
    [node] = json.loads(capsys.readouterr().out)["nodes"]
    assert node["dtype"] == dtype


def test_json_of_the_plan_is_the_report(router: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(router), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["islands_by_family"] == {"softmax": 1}


def test_an_unknown_node_is_refused_with_what_is_close(router: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(router), "logit", "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["close"] == ["logits"]
    assert "did you mean 'logits'?" in captured.err


@pytest.mark.parametrize(("content", "code"), [(None, 2), ("dummy\n", 1)])
def test_what_is_no_model_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, code: int
) -> None:
    path = tmp_path / "no.onnx"
    if content is not None:
        path.write_text(content)
    assert run(["explain", str(path), "x"]) == code
    assert len(capsys.readouterr().err.splitlines()) == 1
