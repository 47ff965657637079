import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from service.cli.app import run
from service.errors import CommandError
from worker.commands.convert import plan_outputs, report_file

MLP = """
<ir_version: 8, opset_import: ["" : 17]>
mlp (float[N, 8] x) => (float[N, 8] y)
<float[8, 8] w = {WEIGHTS}>
{
    h = MatMul(x, w)
    y = Softmax <axis = -1> (h)
}
""".replace("{WEIGHTS}", "{" + ", ".join(["0.5"] * 64) + "}")


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.onnx"
    onnx.save(onnx.parser.parse_model(MLP), path)
    return path


def test_each_model_gets_a_graph_and_a_report(mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(mlp), "--out-dir", str(tmp_path / "out")]) == 0
    converted = onnx.load(tmp_path / "out" / "mlp.onnx")
    onnx.checker.check_model(converted, full_check=True)
    assert [value.type.tensor_type.elem_type for value in converted.graph.input] == [onnx.TensorProto.FLOAT]
    assert onnx.TensorProto.FLOAT16 in {tensor.data_type for tensor in converted.graph.initializer}
    report = json.loads((tmp_path / "out" / "mlp.report.json").read_text())
    assert (report["mode"], report["trunk"]) == ("rope", "fp16")
    assert "half tensors" in capsys.readouterr().out


def test_a_failure_does_not_end_the_rest(mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.onnx").write_text("dummy\n")
    models = [str(tmp_path / "text.onnx"), str(tmp_path / "missing.onnx"), str(mlp)]
    assert run(["convert", *models, "--out-dir", str(tmp_path / "out")]) == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["mlp.onnx", "mlp.report.json"]
    errors = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in errors] == models[:2]


def test_json_has_one_line_for_each_model(mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.onnx").write_text("dummy\n")
    run(["convert", str(tmp_path / "text.onnx"), str(mlp), "--out-dir", str(tmp_path / "out"), "--json"])
    bad, good = map(json.loads, capsys.readouterr().out.splitlines())
    assert bad["problem"]["type"] == "urn:atoll:problem:not-onnx"
    assert Path(good["output"]).is_file()
    assert good["counts"]["half_tensors"] > 0


def test_an_input_is_never_overwritten(mlp: Path, tmp_path: Path) -> None:
    before = mlp.read_bytes()
    assert run(["convert", str(mlp), "--out-dir", str(tmp_path)]) == 2
    assert mlp.read_bytes() == before


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="would both become"):
        plan_outputs([tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx"], tmp_path / "out")


@pytest.mark.parametrize(
    ("target", "report"),
    [("m.onnx", "m.report.json"), ("m.v2.onnx", "m.v2.report.json"), ("m.engine", "m.engine.report.json")],
)
def test_the_report_lies_beside(target: str, report: str) -> None:
    assert report_file(Path(target)) == Path(report)


def test_the_report_is_shown_and_written_as_a_page(
    mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["convert", str(mlp), "--out-dir", str(tmp_path / "out"), "--verbose", "--html"]) == 0
    assert "softmax: 1 island, 1 node" in capsys.readouterr().out
    page = (tmp_path / "out" / "mlp.report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "mlp.onnx" in page
