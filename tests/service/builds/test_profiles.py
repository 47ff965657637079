"""Profiles: complete for the model, or everything that is wrong with them at once."""

from typing import Any

import pytest

from service.builds.presets import BUILT_IN, preset
from service.builds.profiles import resolve_profiles
from service.builds.types import Profile, ShapeRange
from service.errors import InvalidOptions, MissingProfile
from service.wire.types import TensorInfo

Shape = tuple[int | str | None, ...]


def inputs(**shapes: Shape | None) -> list[TensorInfo]:
    return [TensorInfo(name=name, dtype="float", shape=shape) for name, shape in shapes.items()]


def profile(**ranges: tuple[list[int], list[int], list[int]]) -> Profile:
    return {
        name: ShapeRange.model_validate(dict(zip(("min", "opt", "max"), r, strict=True))) for name, r in ranges.items()
    }


def faults(known: list[TensorInfo], given: list[Profile]) -> tuple[type[Exception], list[tuple[str, str]]]:
    with pytest.raises(InvalidOptions) as caught:
        resolve_profiles(known, given)
    errors: list[dict[str, Any]] = caught.value.extensions["errors"]
    return type(caught.value), [(error["where"], error["message"]) for error in errors]


def test_a_static_model_needs_none() -> None:
    assert resolve_profiles(inputs(x=(1, 3)), []) == ()


def test_ranges_of_static_inputs_are_checked_and_left_out() -> None:
    given = profile(x=([1], [2], [4]), s=([3], [3], [3]))
    assert resolve_profiles(inputs(x=("N",), s=(3,)), [given]) == (profile(x=([1], [2], [4])),)


def test_each_of_several_profiles_is_completed() -> None:
    small, large = profile(x=([1], [2], [4])), profile(x=([4], [8], [16]))
    assert resolve_profiles(inputs(x=("N",)), [small, large]) == (small, large)


def test_a_missing_range_names_input_and_dimension() -> None:
    kind, found = faults(inputs(x=(1, "L", None), s=(3,)), [])
    assert kind is MissingProfile
    assert [where for where, _ in found] == ["profiles[0].x", "profiles[0].x"]
    assert "dimension 1 (L) of input 'x'" in found[0][1]
    assert "dimension 2 of input 'x'" in found[1][1]


def test_an_input_of_unknown_rank_needs_shapes() -> None:
    kind, found = faults(inputs(x=None), [])
    assert kind is MissingProfile
    assert "rank is not declared" in found[0][1]


@pytest.mark.parametrize(
    ("shapes", "given", "expected"),
    [
        ({"x": ("N",)}, {"x": ([1], [1], [1]), "y": ([1], [1], [1])}, "no such input"),
        ({"x": ("N", 3)}, {"x": ([1], [1], [1])}, "has rank 1, but the input has rank 2: [N, 3]"),
        ({"x": ("N", 3)}, {"x": ([1, 3], [1, 3], [1, 4])}, "dimension 1 is always 3 in the model, not 3..3..4"),
        ({"x": ("N",)}, {"x": ([0], [1], [2])}, "dimension 0 is 0"),
        (
            {"x": ("N",), "y": (1, "N")},
            {"x": ([1], [2], [3]), "y": ([1, 1], [1, 2], [1, 4])},
            "dimension 1 is 'N', as is dimension 0 of 'x', so both need one range; they have 1..2..4 and 1..2..3",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    shapes: dict[str, Shape], given: dict[str, tuple[list[int], list[int], list[int]]], expected: str
) -> None:
    kind, found = faults(inputs(**shapes), [profile(**given)])
    assert kind is InvalidOptions
    assert len(found) == 1
    assert expected in found[0][1]


def test_all_faults_come_in_one_answer() -> None:
    given = profile(z=([1], [1], [1]), y=([1, 1], [1, 1], [1, 1]))
    _, found = faults(inputs(x=("N",), y=("M",)), [given])
    assert [where for where, _ in found] == ["profiles[0].z", "profiles[0].x", "profiles[0].y"]


def test_placeholders_are_no_symbols() -> None:
    given = profile(x=([1, 1], [1, 2], [1, 4]))
    assert resolve_profiles(inputs(x=(None, None)), [given]) == (given,)


def test_a_preset_stands_in_for_inputs_that_are_not_given() -> None:
    known = inputs(x=(1, 256, "L"), t=("B",), other=(3,))
    mine = profile(t=([1], [2], [4]))
    [resolved] = resolve_profiles(known, [mine], preset("sa3-sm-music"))
    assert resolved == {"x": BUILT_IN["sa3-sm-music"]["x"], **mine}


def test_a_preset_alone_makes_one_profile() -> None:
    assert resolve_profiles(inputs(t=("B",)), [], preset("sa3-sm-music")) == (profile(t=([1], [1], [1])),)


def test_an_unknown_preset_lists_what_there_is() -> None:
    with pytest.raises(InvalidOptions, match="sa3-sm-music"):
        preset("nope")
