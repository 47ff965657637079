import pytest

from service.builds.profile_text import dump_profiles, format_profile, parse_profiles
from service.errors import InvalidOptions


def test_each_input_has_three_shapes_or_one() -> None:
    (profile,) = parse_profiles(["x=1x3x32:2x3x64:4x3x128", "t=1"])
    assert (profile["x"].min, profile["x"].opt, profile["x"].max) == ((1, 3, 32), (2, 3, 64), (4, 3, 128))
    assert profile["t"].min == profile["t"].max == (1,)


@pytest.mark.parametrize("texts", [["a=1 b=2"], ["a=1", "b=2"]])
def test_one_text_may_hold_several_inputs(texts: list[str]) -> None:
    assert [sorted(profile) for profile in parse_profiles(texts)] == [["a", "b"]]


def test_an_input_named_again_begins_the_next_profile() -> None:
    first, second = parse_profiles(["x=1:2:4", "y=1", "x=4:8:16"])
    assert sorted(first) == ["x", "y"]
    assert second["x"].max == (16,)


def test_a_name_may_hold_colons_and_equal_signs() -> None:
    (profile,) = parse_profiles(["serving=input:0=1x8"])
    assert list(profile) == ["serving=input:0"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "write NAME=MIN:OPT:MAX"),
        ("=1:2:3", "write NAME=MIN:OPT:MAX"),
        ("x=1:2", "write NAME=MIN:OPT:MAX"),
        ("x=1xtwo", "not a whole number"),
        ("x=2:1:3", "'x=2:1:3': axis 0: min <= opt <= max does not hold"),
        ("x=1:1x2:3", "different ranks"),
        ("x=-1", "greater than or equal to 0"),
    ],
)
def test_what_is_not_understood_is_quoted(text: str, says: str) -> None:
    with pytest.raises(InvalidOptions, match=says) as caught:
        parse_profiles([text])
    assert repr(text) in caught.value.detail


def test_text_and_json_say_the_same() -> None:
    text = "x=1x3:2x3:4x3 t=1:1:1"
    profiles = parse_profiles([text])
    assert format_profile(profiles[0]) == text
    assert dump_profiles([{}, *profiles]) == [
        {"x": {"min": [1, 3], "opt": [2, 3], "max": [4, 3]}, "t": {"min": [1], "opt": [1], "max": [1]}}
    ]
