"""Ranges that cannot be are refused with the input and the dimension."""

from typing import Any

import pytest

from service.errors import InvalidOptions, MissingProfile
from worker.engine.profiles import check_profiles
from worker.engine.tensors import TensorFacts

X = TensorFacts("x", "half", (1, -1, 64), (None, "length", None))
MASK = TensorFacts("mask", "bool", (-1,), ("length",))
FIXED = TensorFacts("t", "float", (4,), (None,))
SIZES = TensorFacts("sizes", "int64", (2,), (None,), is_shape_tensor=True)
INPUTS = (X, MASK, FIXED, SIZES)

GOOD = {
    "x": ((1, 16, 64), (1, 32, 64), (1, 64, 64)),
    "mask": ((16,), (32,), (64,)),
    "sizes": ((1, 1), (2, 2), (9, 9)),
}


@pytest.mark.parametrize("profile", [GOOD, {**GOOD, "t": ((4,), (4,), (4,))}])
def test_ranges_that_fit_are_taken(profile: dict[str, Any]) -> None:
    check_profiles(INPUTS, (profile, profile))


def test_a_fixed_graph_needs_no_profile() -> None:
    check_profiles((FIXED,), ())


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"y": ((1,), (1,), (1,))}, "has a range for 'y', but there is no such input; there are x, mask, t, sizes"),
        ({"x": ((1, 16), (1, 32), (1, 64))}, "input 'x': min has 2 values; 3 are needed"),
        ({"x": ((1, 16, 64), (1, 32, 64), (1, 64))}, "input 'x': max has 2 values; 3 are needed"),
        ({"x": ((1, 48, 64), (1, 32, 64), (1, 64, 64))}, "input 'x', dimension 1: 48 <= 32 <= 64 does not hold"),
        ({"x": ((1, 16, 64), (1, 32, 64), (2, 64, 64))}, "input 'x', dimension 0 is fixed at 1; the range says 1 to 2"),
        ({"t": ((5,), (5,), (5,))}, "input 't', dimension 0 is fixed at 4; the range says 5 to 5"),
        ({"sizes": ((1,), (2,), (3,))}, "input 'sizes': min has 1 values; 2 are needed"),
        ({"mask": ((16,), (33,), (64,))}, "'length' is 16/32/64 in input 'x' and 16/33/64 in input 'mask'"),
    ],
)
def test_a_range_that_cannot_be_is_refused(change: dict[str, Any], detail: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        check_profiles(INPUTS, (GOOD, {**GOOD, **change}))
    assert detail in caught.value.detail
    assert caught.value.extensions["profile"] == 1


@pytest.mark.parametrize(
    ("left_out", "detail"),
    [("mask", "input 'mask', dimension 0 (length)"), ("sizes", "input 'sizes' (its values are a shape)")],
)
def test_a_missing_range_is_named(left_out: str, detail: str) -> None:
    profile = {name: triple for name, triple in GOOD.items() if name != left_out}
    with pytest.raises(MissingProfile) as caught:
        check_profiles(INPUTS, (profile,))
    assert detail in caught.value.detail
    assert [tensor["name"] for tensor in caught.value.extensions["inputs"]] == [left_out]
