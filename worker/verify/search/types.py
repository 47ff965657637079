"""What the search passes on from step to step."""

from collections.abc import Mapping
from dataclasses import dataclass

from worker.graph.node import Node
from worker.precision.islands import Island
from worker.verify.check import fault
from worker.verify.types import OutputFigures


@dataclass(frozen=True, slots=True)
class Candidate:
    """An island that might be given up. `number` is its place in the plan's list; `obstacle` is why it is not."""

    number: int
    island: Island
    obstacle: str | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.island.nodes


@dataclass(frozen=True, slots=True)
class Drift:
    """How far half moves the results of one island whose inputs are those of FP32.

    `relative_l2` is that of its worst result, compared with what the trunk would have read of it; infinite where half
    overflows and FP32 does not.
    """

    relative_l2: float


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run of the model in FP32 showed, over all samples.

    `shapes`: the largest of each float value. `peaks`: max |x| of what candidates read and make. `drifts`: by
    candidate number.
    """

    shapes: Mapping[str, tuple[int, ...]]
    peaks: Mapping[str, float]
    drifts: Mapping[int, Drift]


@dataclass(frozen=True, slots=True)
class Point:
    """The model in emulated half with some candidates kept: what that costs, and how far it is from FP32."""

    kept: frozenset[int]
    cost: float
    figures: tuple[OutputFigures, ...]

    @property
    def cosine(self) -> float:
        """That of the worst output."""
        return min((figure.cosine for figure in self.figures), default=1.0)

    @property
    def relative_l2(self) -> float | None:
        """That of the worst output; None where an output is zero in FP32 alone."""
        errors = [figure.relative_l2 for figure in self.figures]
        return None if None in errors else max((error for error in errors if error is not None), default=0.0)

    @property
    def nonfinite(self) -> int:
        return sum(figure.nonfinite for figure in self.figures)

    def fault(self, target: float) -> str | None:
        """Why it does not meet the target cosine, by the rule of the verdict."""
        return next((text for figure in self.figures if (text := fault(figure, target))), None)
