"""The work grows as the graph does, however it is shaped: function calls are counted, not seconds."""

import cProfile
import pstats
from pathlib import Path

import onnx
import pytest

from tests.worker.precision.large import SHAPES, Grow, grown
from worker.precision.convert import convert
from worker.types import ConvertRequest

STEPS = 80
SLACK = 1.15
"""What is done once a model, and sorting, which is n log n."""


def calls(folder: Path, grow: Grow, steps: int) -> int:
    """In mode full, which looks for every island."""
    source = folder / "model.onnx"
    source.write_bytes(grown(grow, steps).SerializeToString())
    profile = cProfile.Profile()
    profile.runcall(convert, ConvertRequest(source, folder / "out.onnx", mode="full"))
    return int(pstats.Stats(profile).total_calls)


@pytest.mark.parametrize("grow", SHAPES.values(), ids=SHAPES)
def test_four_times_the_nodes_take_four_times_the_calls(tmp_path: Path, grow: Grow) -> None:
    calls(tmp_path, grow, 1)  # fills the caches of schemas
    assert calls(tmp_path, grow, 4 * STEPS) < SLACK * 4 * calls(tmp_path, grow, STEPS)


def test_a_graph_deeper_than_any_stack_is_converted(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(grown(SHAPES["deep"], 5000).SerializeToString())
    report = convert(ConvertRequest(source, tmp_path / "out.onnx"))
    assert report.counts.half_tensor_share > 0.99


@pytest.mark.slow
def test_two_hundred_thousand_nodes_are_converted(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(grown(SHAPES["deep"], 200_000).SerializeToString())
    report = convert(ConvertRequest(source, tmp_path / "out.onnx"))
    assert report.counts.nodes_before == 200_001
    assert report.counts.half_tensors == 200_001


@pytest.mark.slow
def test_ten_thousand_tiny_initializers_are_converted(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(grown(SHAPES["tiny_weights"], 10_000).SerializeToString())
    counts = convert(ConvertRequest(source, tmp_path / "out.onnx")).counts
    assert counts.half_weights + counts.float_weights == len(onnx.load(tmp_path / "out.onnx").graph.initializer)
    assert counts.half_weights > 9_900
