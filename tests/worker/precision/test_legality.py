"""What TensorRT has no half kernel for stays FP32, though its schema would allow half."""

import pytest

from tests.worker.precision.planned import plan

TRANSPOSED_CONVOLUTION = """
    g (float[1,8,16] x) => (float[1,8,31] y)
    {
        a = Conv(x, v)
        b = ConvTranspose<strides = [2]>(a, w)
        y = Conv(b, v)
    }
"""


@pytest.mark.parametrize(("trunk", "half"), [("fp16", {"a", "b", "y"}), ("bf16", {"a", "y"})])
def test_a_transposed_convolution_is_never_in_bf16(trunk: str, half: set[str]) -> None:
    planned = plan(TRANSPOSED_CONVOLUTION, opset=22, weights={"v": (8, 8, 1), "w": (8, 8, 1)}, trunk=trunk)
    assert planned.half() == half
