from pathlib import Path

import pytest

from service.builds.profile_text import format_profile, parse_profiles
from service.builds.profiles import resolve_profiles
from service.demo import models
from service.demo.models import hint, suggest_profile
from service.errors import CommandError, DigestMismatch
from service.wire.types import Dim, ModelScan, TensorInfo


def scan(**shapes: tuple[Dim, ...] | None) -> ModelScan:
    inputs = tuple(TensorInfo(name=name, dtype="float", shape=shape) for name, shape in shapes.items())
    return ModelScan(
        ir_version=8,
        opsets={"": 17},
        inputs=inputs,
        outputs=(),
        op_counts={},
        nodes=0,
        parameters=0,
        weight_bytes=0,
    )


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"x": ("N", 3, None, None)}, "x=1x3x32x32:1x3x128x128:1x3x512x512"),
        ({"x": ("N", "T"), "mask": ("N", "T")}, "x=1x32:1x128:1x512 mask=1x32:1x128:1x512"),
        ({"x": ("N", 8), "back": ("T", "N")}, "x=1x8:1x8:1x8 back=1x1:1x1:1x1"),
        ({"x": (None, "T"), "t": (1,)}, "x=1x32:1x128:1x512"),
    ],
)
def test_a_suggestion_fits_the_model(shapes: dict[str, tuple[Dim, ...]], text: str) -> None:
    model = scan(**shapes)
    suggested = suggest_profile(model)
    assert format_profile(suggested) == text
    assert resolve_profiles(model.inputs, [suggested]) == (suggested,)


def test_nothing_is_suggested_for_an_unknown_rank() -> None:
    with pytest.raises(CommandError, match="rank of input 'x' is not declared"):
        suggest_profile(scan(x=None))


def test_the_hint_can_be_pasted() -> None:
    (profile,) = parse_profiles(["x=1x2:1x3:1x4"])
    assert 'PROFILE="x=1x2:1x3:1x4"' in hint(profile)


def test_a_cached_model_that_was_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / Path(models._MEMBER).name).write_bytes(b"changed")
    with pytest.raises(DigestMismatch, match="delete it"):
        models.ocr_model(tmp_path)
