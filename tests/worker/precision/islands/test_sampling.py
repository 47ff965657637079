"""Operators that read coordinates."""

import pytest

from tests.worker.precision.planned import plan

SAMPLERS = {
    "GridSample": "s = GridSample<align_corners = 0>(x, grid)",
    "RoiAlign": "s = RoiAlign(x, boxes, batch)",
}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("body", SAMPLERS.values(), ids=SAMPLERS)
def test_image_and_coordinates_are_fp32_together(body: str, trunk: str) -> None:
    planned = plan(
        "g (float[1,16,32,32] input, float[1,8,8,2] grid, float[2,4] boxes, int64[2] batch) "
        f"=> (float[] output) {{ x = Conv(input, k) {body} output = Conv(s, k) }}",
        22,
        {"k": (16, 16, 1, 1)},
        mode="minimal",
        trunk=trunk,
    )
    assert planned.island("sampling") == {"s"}
    assert planned.half() >= {"x", "output"}
