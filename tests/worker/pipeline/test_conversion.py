"""The conversion child: what it answers, and what it tells on the way."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.worker.precision.large import write_mlp
from worker.child import run_child


def converted(folder: Path, **options: Any) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """The answer about a model of 32 MiB that was converted to `folder / out.onnx`, and the events before it."""
    source = write_mlp(folder / "model.onnx", layers=8, width=1024)
    events: list[Mapping[str, Any]] = []
    request = {"source": str(source), "target": str(folder / "out.onnx"), **options}
    return run_child("worker.conversion", request, on_event=events.append, timeout=120), events


def digests_on_disk(*paths: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_the_digest_of_what_was_written_comes_with_the_report(tmp_path: Path) -> None:
    answer, _ = converted(tmp_path, hashed=True)
    assert answer["digests"] == digests_on_disk(tmp_path / "out.onnx")
    assert answer["report"]["counts"]["half_weights"] == 8


@pytest.mark.parametrize("hashed", [{}, {"hashed": False}], ids=["unasked", "declined"])
def test_nothing_is_hashed_unasked(tmp_path: Path, hashed: dict[str, bool]) -> None:
    answer, _ = converted(tmp_path, **hashed)
    assert answer["digests"] == {}


def test_bytes_and_their_rate_are_told_up_to_the_last_one(tmp_path: Path) -> None:
    _, events = converted(tmp_path)
    size = (tmp_path / "out.onnx").stat().st_size
    assert {(event["phase"], event["unit"], event["of"]) for event in events} == {("writing weights", "bytes", size)}
    assert events[-1]["step"] == size
    assert events[-1]["rate"] > 0


def test_a_search_tells_how_far_it_is(tmp_path: Path) -> None:
    answer, events = converted(tmp_path, mode="auto")
    assert answer["report"]["auto"]["outcome"] == "met"
    phases = list(dict.fromkeys(event["phase"] for event in events))
    assert phases == ["running FP32", "observing islands", "trying islands", "writing weights"]
