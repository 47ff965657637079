import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

from benchmarks.peers.batch import BatchBroken, Outcome, run_batch
from benchmarks.peers.catalogue import PEERS, Peer
from benchmarks.peers.contenders import enter
from benchmarks.peers.converting import CONVERTERS
from benchmarks.peers.jobs import conversion_job
from benchmarks.peers.judge_graphs import has_half, interface, validity
from benchmarks.peers.judge_operators import accuracy, difference
from benchmarks.peers.models import RealModel
from benchmarks.peers.operator_comparison import OperatorFinding
from benchmarks.peers.page import page
from benchmarks.peers.real_comparison import Baseline, RealFinding
from benchmarks.peers.tables import Sheet, model_sheet, operator_sheet, real_sheet

ROOT = Path(__file__).parents[2]
FLOATS = np.array([1.0, -2.0, 3.0], np.float32)
HALF_ADD = """<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) {
    half = Cast<to=10>(x)
    sum = Add(half, half)
    y = Cast<to=1>(sum)
}"""
HALF_SQUARE = HALF_ADD.replace("Add", "Mul")
OUT_OF_ORDER = """<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) {
    y = Neg(a)
    a = Abs(x)
}"""


# --- jobs that crash or hang -----------------------------------------------------------------------------------------

HANDLER = """
import os, sys, time
from benchmarks.peers.batch import serve
def handle(do):
    print("printed by a converter")
    match do:
        case "raise": raise ValueError("two\\nlines")
        case "exit": sys.exit("no attention")
        case "abort": os.abort()
        case "leave": os._exit(3)
        case "hang": time.sleep(60)
    return {"pid": os.getpid()}
serve(handle)
"""


def batch(*todo: str, limit: float = 20.0, code: str = HANDLER) -> list[Outcome]:
    jobs = {f"{position}": {"do": do} for position, do in enumerate(todo)}
    return list(run_batch([sys.executable, "-c", code], jobs, limit))


@pytest.mark.parametrize(
    ("do", "error"),
    [
        ("raise", "ValueError: two lines"),
        ("exit", "SystemExit: no attention"),
        ("abort", "died of SIGABRT"),
        ("leave", "exit code 3: printed by a converter"),
    ],
)
def test_a_job_that_fails_is_told_and_the_next_one_is_done(
    do: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    failed, done = batch(do, "work")
    assert (failed.error, failed.result) == (error, None)
    assert (done.error, set(done.result or ())) == ("", {"pid"})


def test_a_job_that_hangs_is_ended_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    hung, done = batch("hang", "work", limit=2.0)
    assert hung.error == "no answer within 2 s"
    assert done.error == ""


def test_one_process_does_all_jobs_that_go_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    results = [outcome.result for outcome in batch("work", "raise", "work")]
    assert results[0] is not None
    assert results == [results[0], None, results[0]]


def test_time_is_what_the_handler_took_and_what_it_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code = """
import time
from benchmarks.peers.batch import serve
def handle(do):
    time.sleep(0.2)
serve(handle)
"""
    outcome = batch("work", code=code)[0]
    assert outcome.cpu_seconds < outcome.seconds


def test_a_process_that_does_not_start_gives_its_last_words() -> None:
    with pytest.raises(BatchBroken, match="no such library"):
        batch("work", code="import sys; sys.exit('no such library')")


# --- judges ----------------------------------------------------------------------------------------------------------


def written(text: str, path: Path) -> tuple[Path, ModelProto]:
    model = parser.parse_model(text)
    onnx.save(model, path)
    return path, model


@pytest.mark.parametrize(
    ("expected", "got", "fault"),
    [
        ([FLOATS], [FLOATS * 1.01], ""),
        ([FLOATS], [FLOATS * 1.1], "error 0.3 at scale 3"),
        ([FLOATS], [FLOATS.astype(np.float16)], "float16[3] for float32[3]"),
        ([FLOATS], [FLOATS[:2]], "float32[2] for float32[3]"),
        ([FLOATS], [np.array([1, -2, np.inf], np.float32)], "not finite where FP32 is, or the reverse"),
        (
            [np.array([np.inf], np.float32)],
            [np.array([-np.inf], np.float32)],
            "not finite where FP32 is, or the reverse",
        ),
        ([np.array([np.nan], np.float32)], [np.array([np.nan], np.float32)], ""),
        ([np.array([1, 2])], [np.array([1, 3])], "int64 values differ"),
        ([[FLOATS, FLOATS], None], [[FLOATS, FLOATS], None], ""),
        ([[FLOATS, FLOATS]], [[FLOATS]], "1 values for 2"),
        ([np.zeros((0, 2), np.float32)], [np.zeros((0, 2), np.float32)], ""),
    ],
)
def test_outputs_are_right_within_the_tolerance_of_the_largest_value(
    expected: list[Any], got: list[Any], fault: str
) -> None:
    assert difference(expected, got, 0.02) == fault


@pytest.mark.parametrize(
    ("text", "value", "fault"),
    [(HALF_ADD, 3.0, ""), (HALF_SQUARE, 3.0, "error 3 at scale 6"), (HALF_ADD, 60000.0, "not finite")],
)
def test_a_converted_graph_is_judged_as_half_precision_computes(
    text: str, value: float, fault: str, tmp_path: Path
) -> None:
    target, converted = written(text, tmp_path / "model.onnx")
    feeds = {"x": np.full(3, value, np.float32)}
    assert accuracy([2 * feeds["x"]], target, converted, feeds).startswith(fault)
    assert has_half(converted)


def test_what_only_lacks_order_is_told_apart_from_what_is_wrong(tmp_path: Path) -> None:
    target, converted = written(OUT_OF_ORDER, tmp_path / "model.onnx")
    found = validity(target, converted, True)
    assert "topologically sorted" in found["checker"]
    assert found["reordered"] == ""
    assert validity(target, converted, False) == {"checker": "", "reordered": ""}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("float[3] x", "float16[3] x", "was x: tensor_type FLOAT, is x: tensor_type FLOAT16"),
        ("(float[3] y)", "(float[3] z)", "was y: tensor_type FLOAT, is z: tensor_type FLOAT"),
        ("ir_version: 8", "ir_version: 9", ""),
        ("(float[3] x)", "(float[3] x, float[1] w = {1})", ""),
    ],
)
def test_public_names_and_types_have_to_stay(old: str, new: str, words: str) -> None:
    source, converted = parser.parse_model(HALF_ADD), parser.parse_model(HALF_ADD.replace(old, new))
    assert interface(source, converted) == words


# --- tables ----------------------------------------------------------------------------------------------------------


def operator_finding(name: str = "node/test", **changes: Any) -> OperatorFinding:
    texts = dict.fromkeys(("converts", "checker", "reordered", "interface", "right", "parse"), "")
    return OperatorFinding(**{"name": name, "seconds": 0.01, "cpu_seconds": 0.01, "half": True, **texts, **changes})


def real_finding(**changes: Any) -> RealFinding:
    texts = dict.fromkeys(("converts", "checker", "reordered", "interface", "close", "parse", "build"), "")
    model = RealModel("dit", Path("dit.onnx"), {}, cores=2)
    figures = {"seconds": 1.5, "cpu_seconds": 1.5, "cosine": 0.99999, "fused": 2, "norm_warning": False}
    return RealFinding(**{"model": model, "baseline": Baseline("", ""), **figures, **texts, **changes})


def column(sheet: Sheet, name: str) -> Mapping[str, str]:
    position = sheet.head.index(name)
    return {row[0]: row[position] for row in sheet.rows}


def test_operator_tests_are_counted_by_question_and_set_in_relation_to_ours() -> None:
    sheet = operator_sheet(
        {
            "autocast": [operator_finding(checker="late", right="error"), operator_finding(checker="late")],
            "onnxruntime": [operator_finding(converts="died", checker="died", reordered="died"), operator_finding()],
            "atoll": [operator_finding(half=False), operator_finding(parse=None)],
        }
    )
    assert sheet.title == "2 ONNX operator tests"
    assert column(sheet, "autocast")["passes the ONNX checker"] == "0 / 2"
    assert column(sheet, "autocast")["all of these once its nodes are put in order"] == "1 / 2"
    assert column(sheet, "onnxruntime")["all of these"] == "1 / 2"
    assert column(sheet, "onnxruntime")["ours / this one"] == "2.00"
    assert column(sheet, "autocast")["ours / this one"] == "-"
    assert column(sheet, "atoll")["all of these, and something is FP16"] == "1"
    assert column(sheet, "atoll")["parsed strongly typed, of what is in FP32"] == "1 / 1"


@pytest.mark.parametrize(
    ("changes", "cell", "good"),
    [
        ({}, "0.999990, 2 of 2 fused, 1.50 s", True),
        ({"checker": "late"}, "0.999990, unsorted, 2 of 2 fused, 1.50 s", False),
        ({"checker": "types", "reordered": "types"}, "0.999990, invalid, 2 of 2 fused, 1.50 s", False),
        ({"cosine": 0.5, "close": "2 elements are not finite"}, "0.500000, not finite, 2 of 2 fused, 1.50 s", False),
        ({"cosine": None, "close": "no kernel"}, "does not run, 2 of 2 fused, 1.50 s", False),
        ({"converts": "died of SIGABRT"}, "not converted: died of SIGABRT…", False),
        ({"build": "no kernel"}, "0.999990, refused by TensorRT, 2 of 2 fused, 1.50 s", False),
        ({"build": "no kernel", "baseline": Baseline("", "no kernel")}, "0.999990, 2 of 2 fused, 1.50 s", True),
        ({"norm_warning": True}, "0.999990, 2 of 2 fused, norm warning, 1.50 s", True),
    ],
)
def test_a_model_shows_its_figures_and_its_faults(changes: Mapping[str, Any], cell: str, good: bool) -> None:
    findings = {"atoll": [real_finding(**changes)]}
    assert model_sheet(findings).rows == (("dit", cell),)
    figures = column(real_sheet(findings), "atoll")
    assert figures["fused attentions, of all attention cores"] == "2 / 2"
    assert figures["valid, close, and taken where FP32 is"] == f"{good:d} / 1"


def test_the_page_tells_how_it_was_made_and_names_what_ours_gets_wrong() -> None:
    wrong = operator_finding("node/test_tan", right="error 1 at scale 2")
    text = page(
        [operator_sheet({"atoll": [wrong]})], {"atoll": [wrong]}, "python -m benchmarks.converters", {"commit": "abc"}
    )
    assert "    python -m benchmarks.converters\n" in text
    assert "Commit: abc." in text
    assert "| all of these | 0 / 1 |" in text
    assert "- `node/test_tan`: error 1 at scale 2" in text


# --- the whole -------------------------------------------------------------------------------------------------------


def test_each_peer_has_its_converter() -> None:
    assert {peer.name for peer in PEERS} == set(CONVERTERS)


@pytest.mark.parametrize("name", ["onnxruntime", "atoll"])
def test_a_converter_takes_a_job_by_its_names(name: str, tmp_path: Path) -> None:
    source, _ = written(HALF_ADD.replace("Add(half, half)", "MatMul(half, half)"), tmp_path / "source.onnx")
    target = tmp_path / "target.onnx"
    CONVERTERS[name]()(**conversion_job(source, target, None))
    assert target.is_file()


@pytest.mark.slow
def test_a_peer_is_installed_once_in_an_environment_of_its_own(tmp_path: Path) -> None:
    peer = next(peer for peer in PEERS if peer.name == "onnxconverter-common")
    contender = enter(peer, tmp_path, None)
    assert contender.absent == ""
    assert contender.versions.startswith("onnxconverter-common 1.")
    python = Path(contender.command[0])
    made = python.lstat().st_mtime_ns
    assert python.is_relative_to(tmp_path)
    assert enter(peer, tmp_path, None) == contender
    assert python.lstat().st_mtime_ns == made


@pytest.mark.slow
def test_a_peer_that_cannot_be_installed_is_not_run_and_says_why(tmp_path: Path) -> None:
    absent = Peer("autocast", "", ("nothing",), (f"{tmp_path}/no-such-wheel.whl",))
    contender = enter(absent, tmp_path, None)
    assert contender.command == ()
    assert "no-such-wheel.whl" in contender.absent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    environment.pop("ATOLL_BENCH_REFERENCE", None)
    command = [sys.executable, "-m", "benchmarks.converters", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_can_be_had_is_run_and_judged_and_what_cannot_is_named(tmp_path: Path) -> None:
    markdown = tmp_path / "page.md"
    peers = ["reference", "atoll"]
    chosen = ["--models", "operators", "--operators", "test_matmul_?d", "--peers", *peers]
    result = run(*chosen, "--markdown", str(markdown))
    assert result.returncode == 0, result.stderr
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in markdown.read_text().splitlines() if "|" in line
    ]
    figures = {row[0]: row[1:] for row in rows}
    assert figures["reference"][0] == "not run: its script was not given (--reference)"
    assert figures["all of these"] == ["3 / 3"]
    assert figures["parsed strongly typed, of what is in FP32"] == ["3 / 3"]


def test_a_reference_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = run("--reference", str(tmp_path / "none.py"))
    assert result.returncode == 2
    assert "--reference: there is no file" in result.stderr
