"""What verification is asked, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

VerdictName = Literal["passed", "failed", "not verified"]
Shapes = Mapping[str, tuple[int, ...]]
ShapeTriple = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Unverifiable(Exception):  # noqa: N818 -- no error of the user's: it becomes the verdict `not verified`
    """Why nothing can be said about a conversion; the message is the verdict's reason."""


class Incomparable(Exception):  # noqa: N818 -- no error of the user's: it becomes the verdict `failed`
    """Why the converted graph's outputs cannot even be compared with those of FP32."""


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """Compare `converted` under half emulation with `source` in FP32. Profiles: input -> (min, opt, max) shapes.

    `seconds` and `memory_bytes` bound the work: beyond them the verdict is `not verified`, never `passed`.
    """

    source: Path
    converted: Path
    profiles: tuple[Mapping[str, ShapeTriple], ...] = ()
    target_cosine: float = 0.999
    seed: int = 0
    seconds: float = 600.0
    memory_bytes: int = 16 << 30
    weight_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True)
class OutputFigures:
    """How far one output is from FP32; the worst over all inputs that were tried.

    `nonfinite`: elements that are inf or NaN where FP32 is finite, or finite where FP32 is not.
    `relative_l2`: norm of the error over the norm of the FP32 values; None when only the latter is zero.
    `snr_db`: None when there is no error, or no signal. `largest`: max |x| in FP32.
    """

    name: str
    cosine: float
    relative_l2: float | None
    max_error: float
    snr_db: float | None
    nonfinite: int
    largest: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`cosine` is that of the worst output; None when nothing was compared. `reason` says why it did not pass."""

    verdict: VerdictName
    reason: str | None = None
    cosine: float | None = None
    outputs: tuple[OutputFigures, ...] = ()
    seconds: float = 0.0
