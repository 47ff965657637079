from datetime import UTC, datetime
from typing import Any

import pytest

from service.builds.types import BuildRecord, BuildSpec, EngineRef, Proof, Stage, StageTiming, Status
from service.cli.progress import StageLines, human_size, outcome, proof_lines
from service.errors import BuilderFailed, NotOnnx

RECORD = BuildRecord(
    id="01", key="k", status=Status.QUEUED, created_at=datetime(2026, 1, 1, tzinfo=UTC), spec=BuildSpec(model="0" * 64)
)


def at(**changes: Any) -> BuildRecord:
    return RECORD.evolve(**changes)


def test_each_stage_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    fetched = StageTiming(name=Stage.FETCHING, seconds=0.25)
    converted = StageTiming(name=Stage.CONVERTING, seconds=1.5)
    lines = StageLines()
    for record in (at(), at(), at(status=Status.RUNNING, stages=(fetched,)), at(stages=(fetched, converted))):
        lines.show(record)
    assert capsys.readouterr().out.split("\n") == [
        "  queued",
        "  fetching        0.25 s",
        "  converting      1.50 s",
        "",
    ]


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            at(status=Status.SUCCEEDED, engine=EngineRef(digest="ab", size=1_500_000, url="/engines/ab")),
            "succeeded: engine ab (1.5 MB)",
        ),
        (
            at(status=Status.SUCCEEDED, onnx=EngineRef(digest="cd", size=999, url="/builds/01/onnx")),
            "succeeded: graph cd (999 B) at /builds/01/onnx",
        ),
        (
            at(status=Status.FAILED, problem=NotOnnx("it is text").problem()),
            "failed: The file is not an ONNX model: it is text",
        ),
        (
            at(status=Status.FAILED, problem=BuilderFailed("TensorRT's builder gave no engine: why").problem()),
            "failed: TensorRT's builder gave no engine: why",
        ),
        (at(status=Status.CANCELLED), "cancelled"),
    ],
)
def test_the_outcome_is_one_line(record: BuildRecord, line: str) -> None:
    assert outcome(record) == line


def test_the_proof_names_its_figures_and_warnings() -> None:
    proof = Proof(
        verdict="passed",
        cosine=0.99999,
        half_tensor_share=0.5,
        attentions=4,
        fused_attentions=3,
        builder_warnings=("careful",),
    )
    text = "\n".join(proof_lines(proof))
    for expected in ("passed", "0.9999900", "50.0%", "3 fused, 4 cores", "1 warnings", "careful"):
        assert expected in text


def test_what_was_not_measured_is_not_shown() -> None:
    assert proof_lines(Proof(reason="the graph draws random numbers")) == [
        "verdict        not verified (the graph draws random numbers)",
        "builder        0 warnings",
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (10_857_958, "10.9 MB"), (3e15, "3000.0 TB")],
)
def test_sizes_are_decimal(count: float, text: str) -> None:
    assert human_size(count) == text
