"""The fast way to half gives the bits of the plain one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from worker.graph.dtype import BF16, FP16, HalfType
from worker.graph.kernel import largest_bits, rounding
from worker.graph.weights import Conversion

A_LOT = 1 << 40


def floats(*bits: int) -> NDArray[np.float32]:
    return np.array(bits, np.uint32).view(np.float32)


def every_exponent() -> NDArray[np.float32]:
    """Bit patterns all over the range, those halfway between two halves among them."""
    spread = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32)
    heads = np.arange(0, 1 << 32, 1 << 13, dtype=np.uint64)
    ties = np.concatenate([heads + ((1 << 12) + step) for step in (-1, 0, 1)]).astype(np.uint32)
    return np.concatenate([spread, ties]).view(np.float32)


VALUES = {
    "all over": every_exponent(),
    "no NaN": np.nan_to_num(every_exponent(), nan=1.0, posinf=np.inf, neginf=-np.inf),
    "NaNs with a payload": floats(0x7F800001, 0xFFC12345, 0x7FBFFFFF, 0x3F800000),
    "infinite": floats(0x7F800000, 0xFF800000),
    "the largest half, and what rounds up from it": np.array([65504, 65519.996, 65520, -65520], np.float32),
    "subnormal halves and halves of them": np.array([2.0**-24, 2.0**-25, 3 * 2.0**-26, -(2.0**-14)], np.float32),
    "empty": np.zeros(0, np.float32),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("half", [FP16, BF16], ids=["fp16", "bf16"])
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_lot_is_rounded_as_a_little_is(values: NDArray[np.float32], half: HalfType) -> None:
    assert rounding(half, A_LOT)(values).tobytes() == Conversion(half).apply(values).tobytes()


@pytest.mark.parametrize(
    ("values", "bits"),
    [([], 0), ([1.0, -2.0], 0x4000), ([3.0, -2.0], 0x4200), ([-0.0], 0), ([np.inf, -1], 0x7C00), ([-np.nan], 0x7E00)],
)
def test_the_largest_magnitude_is_found_on_either_side_of_zero(values: list[float], bits: int) -> None:
    assert largest_bits(np.array(values, np.float16)) == bits
