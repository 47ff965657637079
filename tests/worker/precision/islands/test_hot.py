"""Activations that were measured near the end of the range."""

import pytest

from tests.worker.precision.planned import Planned, plan_in_trunk

RESIDUAL = "h = MatMul(x, w) r = Add(x, h) n = LayerNormalization(r, gamma) y = MatMul(n, w)"


def planned(measured: dict[str, float], **options: object) -> Planned:
    return plan_in_trunk(RESIDUAL, measured=measured, **options)


@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
def test_makers_and_readers_of_a_hot_value_are_fp32(mode: str) -> None:
    found = planned({"h": 40_000.0, "r": 66_000.0, "x": 3.0}, mode=mode)
    assert found.island("hot residual") == {"h", "r"}
    assert found.island("normalization") == {"n"}
    assert found.half() >= {"x", "y", "output"}


def test_the_reason_tells_how_far_it_goes() -> None:
    assert planned({"r": 66_000.0}).reason("r") == "hot residual: activations from 'r' on reach 6.6e+04"


@pytest.mark.parametrize(
    ("peak", "trunk", "hot"),
    [(16_000.0, "fp16", False), (17_000.0, "fp16", True), (1e9, "bf16", False), (2e38, "bf16", True)],
)
def test_a_quarter_of_the_range_is_the_limit(peak: float, trunk: str, hot: bool) -> None:
    assert bool(planned({"r": peak}, trunk=trunk).island("hot residual")) is hot


def test_values_that_nobody_measured_are_left_alone() -> None:
    assert planned({}).island("hot residual") == set()
