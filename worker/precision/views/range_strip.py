"""How large tensors get along the graph, as a picture: bars, coloured by their distance to FP16's ends."""

from collections.abc import Sequence
from dataclasses import dataclass

LOWEST, HIGHEST = -24, 20
"""log2 of max |x| at the foot and the top of the drawing: FP16's smallest subnormal, and well beyond its largest."""

OVERFLOW, UNDERFLOW = 16.0, -14.0
_NEAR = 3.0


@dataclass(frozen=True, slots=True)
class RangeStrip:
    """`paths`: SVG path data by kind: `beyond` FP16's range, `near` its ends, or `inside`. One unit is a stretch
    across, an order of magnitude (of two) down; `limits` are the heights of FP16's largest and smallest normal."""

    width: int
    height: int
    paths: dict[str, str]
    limits: tuple[float, float]


def draw_ranges(strip: Sequence[float | None]) -> RangeStrip:
    """`strip`: log2 of max |x|, None where all is zero."""
    paths: dict[str, list[str]] = {}
    for at, order in enumerate(strip):
        if order is None:
            continue
        top = HIGHEST - min(max(order, LOWEST + 0.5), HIGHEST)
        paths.setdefault(_kind(order), []).append(f"M{at} {top:g}h1V{HIGHEST - LOWEST}h-1z")
    return RangeStrip(
        width=max(1, len(strip)),
        height=HIGHEST - LOWEST,
        paths={kind: "".join(bars) for kind, bars in paths.items()},
        limits=(HIGHEST - OVERFLOW, HIGHEST - UNDERFLOW),
    )


def _kind(order: float) -> str:
    distance = min(OVERFLOW - order, order - UNDERFLOW)
    return "beyond" if distance < 0 else "near" if distance < _NEAR else "inside"
