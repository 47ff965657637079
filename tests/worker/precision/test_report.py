import json
from pathlib import Path

import onnx
import pytest

from tests.worker.precision.planned import WIDTH, parse
from worker.precision.convert import convert, preview
from worker.precision.report import ConversionReport
from worker.types import ConvertRequest

SCHEMA = Path(__file__).parents[3] / "docs" / "report.schema.json"

_WEIGHTS = ",".join(["0.5"] * (WIDTH * WIDTH))
NET = f"""
g (float[N,{WIDTH}] x) => (float[N,{WIDTH}] y)
<float[{WIDTH},{WIDTH}] w = {{{_WEIGHTS}}}, float eps = {{1e-6}}, float two = {{2}}, int64[1] last = {{-1}}>
{{
    h = MatMul(x, w)
    s = Pow(h, two)
    m = ReduceMean<axes = [-1]>(s)
    e = Add(m, eps)
    r = Sqrt(e)
    n = Div(h, r)
    y = MatMul(n, w)
}}
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(parse(NET), path)
    return path


def test_the_documented_schema_is_that_of_the_code() -> None:
    schema = ConversionReport.model_json_schema()
    assert json.loads(SCHEMA.read_text()) == schema, f"write `ConversionReport.model_json_schema()` to {SCHEMA.name}"


def test_a_preview_tells_what_the_conversion_does_and_writes_nothing(net: Path) -> None:
    before = sorted(net.parent.iterdir())
    told = preview(ConvertRequest(net, net))
    assert sorted(net.parent.iterdir()) == before
    done = convert(ConvertRequest(net, net.with_name("out.onnx")))
    assert told.model_copy(update={"seconds": 0.0}) == done.model_copy(update={"seconds": 0.0})


def test_weights_that_stay_fp32_are_told_with_who_reads_them(net: Path) -> None:
    kept = {weight.name: weight for weight in preview(ConvertRequest(net, net)).kept_weights}
    assert set(kept) == {"eps", "two"}
    assert (kept["eps"].cause, kept["eps"].size, kept["eps"].shape) == ("normalization", 4, ())
    assert kept["eps"].readers == ("Add:e",)


@pytest.mark.parametrize(
    ("mode", "runs"),
    [("rope", "cast 1, half 1, cast 1, fp32 5, cast 1, half 1, cast 1"), ("none", "fp32 7")],
)
def test_runs_follow_the_converted_graph(net: Path, mode: str, runs: str) -> None:
    told = preview(ConvertRequest(net, net, mode=mode))
    assert ", ".join(f"{run.kind} {run.nodes}" for run in told.node_runs) == runs
    assert sum(run.nodes for run in told.node_runs) == told.counts.nodes_after
