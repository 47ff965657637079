"""Profiles as one types them: `x=1x3x48x32:1x3x48x320:1x3x48x1280`, an input's smallest, best and largest shape."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from service.builds.types import Profile, ShapeRange
from service.errors import InvalidOptions

_FORM = "write NAME=MIN:OPT:MAX or NAME=SHAPE, as in x=1x3x48x32:1x3x48x320:1x3x48x1280"


def parse_profiles(texts: Iterable[str]) -> tuple[Profile, ...]:
    """Profiles from one text for each input (or several, separated by spaces); an input named again begins the next.

    Raises InvalidOptions quoting the text that is not understood.
    """
    profiles: list[Profile] = []
    for text in " ".join(texts).split():
        name, shapes = _parse(text)
        if not profiles or name in profiles[-1]:
            profiles.append({})
        profiles[-1][name] = shapes
    return tuple(profiles)


def format_profile(profile: Profile) -> str:
    """The text that `parse_profiles` reads back."""
    return " ".join(
        f"{name}={_shape(shapes.min)}:{_shape(shapes.opt)}:{_shape(shapes.max)}" for name, shapes in profile.items()
    )


def dump_profiles(profiles: Iterable[Profile]) -> list[dict[str, Any]]:
    """As JSON holds them in a request; empty ones are left out."""
    return [
        {name: shapes.model_dump(mode="json") for name, shapes in profile.items()} for profile in profiles if profile
    ]


def _parse(text: str) -> tuple[str, ShapeRange]:
    name, _, shapes = text.rpartition("=")
    parts = shapes.split(":")
    if not name or len(parts) not in (1, 3):
        raise InvalidOptions(f"profile {text!r} is not understood: {_FORM}")
    try:
        low, best, high = (_dims(part) for part in (parts * 3 if len(parts) == 1 else parts))
        return name, ShapeRange(min=low, opt=best, max=high)
    except ValidationError as error:
        raise InvalidOptions(f"profile {text!r}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    except ValueError:
        raise InvalidOptions(f"profile {text!r} has a size that is not a whole number: {_FORM}") from None


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x"))


def _shape(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
