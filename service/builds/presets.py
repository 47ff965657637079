"""Presets: named profiles for models that many people build. They apply to those of their inputs that a model has."""

from collections.abc import Mapping

from service.builds.types import Profile, ShapeRange
from service.errors import InvalidOptions


def _fixed(*shape: int) -> ShapeRange:
    return ShapeRange(min=shape, opt=shape, max=shape)


def _latents(channels: int) -> ShapeRange:
    """One to 4096 latent frames, best at 1292 (two minutes of audio)."""
    return ShapeRange(min=(1, channels, 1), opt=(1, channels, 1292), max=(1, channels, 4096))


BUILT_IN: Mapping[str, Profile] = {
    # The diffusion transformer of the stable-audio family, small music model.
    "sa3-sm-music": {
        "x": _latents(256),
        "t": _fixed(1),
        "t5_hidden": _fixed(1, 256, 768),
        "t5_mask": _fixed(1, 256),
        "seconds_total": _fixed(1),
        "local_add_cond": _latents(257),
    },
}


def preset(name: str) -> Profile:
    """Raises InvalidOptions, which lists what there is."""
    found = BUILT_IN.get(name)
    if found is None:
        raise InvalidOptions(f"There is no preset {name!r}; there are: {', '.join(sorted(BUILT_IN))}.")
    return found
