"""The accuracy part of the page: who is to blame, and how close tensors come to FP16's ends."""

from typing import Any

import pytest

from service.builds.types import Proof
from worker.precision.views.html import render_html
from worker.precision.views.range_strip import HIGHEST, LOWEST, draw_ranges

VERIFICATION: dict[str, Any] = {
    "verdict": "failed",
    "inputs": "samples",
    "pessimistic": "failed",
    "outputs": [
        {"name": "y", "cosine": 0.5, "relative_l2": None, "max_error": 2.0, "snr_db": None, "nonfinite": 3}
    ],
    "culprit": {"node": "/norm/<Pow>", "op": "Pow", "tensor": "p", "drift": None, "inherited": 0.0001},
    "worst": {"node": "/out", "op": "Add", "tensor": "y", "drift": 0.25, "inherited": 0.2},
    "findings": [{"kind": "accumulation", "where": "/mean", "detail": "passed with sums in FP32"}],
    "ranges": {
        "tensors": 2,
        "overflow": [
            {"tensor": "p", "node": "/norm/Pow", "largest": 1e6, "overflow_bits": -3.93, "underflow_bits": 33.9}
        ],
        "underflow": [],
        "strip": [19.9, None, -20.0],
        "stretch": 1,
    },
}  # fmt: skip


def test_the_page_names_the_node_the_findings_and_the_closest_tensors() -> None:
    page = render_html("net", None, Proof(verdict="failed"), VERIFICATION)
    for text in ("/norm/&lt;Pow&gt;", "inf or NaN", "off by 0.25", "your samples", "accumulation", "-3.9", "/norm/Pow"):
        assert text in page, text


def test_a_verification_without_figures_is_short() -> None:
    empty = {
        **VERIFICATION,
        "inputs": None,
        "outputs": (),
        "culprit": None,
        "worst": None,
        "findings": (),
        "ranges": None,
    }
    assert "Ranges" not in render_html("net", None, Proof(), empty)


@pytest.mark.parametrize(
    ("order", "kind"), [(0.0, "inside"), (14.0, "near"), (16.5, "beyond"), (-12.0, "near"), (-15.0, "beyond")]
)
def test_bars_are_coloured_by_their_distance_to_an_end(order: float, kind: str) -> None:
    assert set(draw_ranges([order]).paths) == {kind}


def test_bars_stay_in_the_picture() -> None:
    strip = draw_ranges([1000.0, None, -1000.0])
    assert (strip.width, strip.height) == (3, HIGHEST - LOWEST)
    assert (
        strip.paths["beyond"] == f"M0 0h1V{HIGHEST - LOWEST}h-1zM2 {HIGHEST - LOWEST - 0.5:g}h1V{HIGHEST - LOWEST}h-1z"
    )
