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

    `samples`: files with inputs (see `worker.verify.samples`); without them inputs are generated from `seed`.
    `pessimistic`: run once more with sums in half. `ranges`: measure how large each tensor gets.
    `any_interface`: `converted` is no conversion by atoll: it may be invalid ONNX that runs, or take other dtypes.
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
    samples: tuple[Path, ...] = ()
    pessimistic: bool = False
    ranges: bool = False
    any_interface: bool = False


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
class Culprit:
    """A node whose result drifts from FP32: by `drift` (relative L2; None: to inf or NaN), while the values that it
    reads are off by `inherited` at most."""

    node: str
    op: str
    tensor: str
    drift: float | None
    inherited: float

    def exceeds(self, limit: float) -> bool:
        return self.drift is None or self.drift > limit

    def __str__(self) -> str:
        size = "inf or NaN" if self.drift is None else f"off by {self.drift:.3g}"
        return f"node {self.node!r} ({self.op}) is {size}, what it reads by {self.inherited:.3g}"


@dataclass(frozen=True, slots=True)
class VerdictFinding:
    """What the user should know beside the verdict. `where` names an output, a node or an operator."""

    kind: str
    where: str
    detail: str


@dataclass(frozen=True, slots=True)
class TensorRange:
    """max |x| of a tensor, and how many binary orders of magnitude it is away from FP16's largest number and from
    its smallest normal one; negative: beyond."""

    tensor: str
    node: str
    largest: float
    overflow_bits: float
    underflow_bits: float


@dataclass(frozen=True, slots=True)
class Ranges:
    """`overflow` and `underflow`: the tensors closest to each, the closest first. `strip`: log2 of max |x| along the
    graph in the order of its nodes, the largest of each stretch of `stretch` tensors; None where all are zero."""

    tensors: int
    overflow: tuple[TensorRange, ...]
    underflow: tuple[TensorRange, ...]
    strip: tuple[float | None, ...]
    stretch: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """`cosine` is that of the worst output; None when nothing was compared. `reason` says why it did not pass.

    `pessimistic`: the verdict when sums are in half too; None when that was not asked for. `culprit`: the node that
    brought the error in, `worst`: the tensor furthest off; of verdicts that failed.
    """

    verdict: VerdictName
    reason: str | None = None
    cosine: float | None = None
    outputs: tuple[OutputFigures, ...] = ()
    seconds: float = 0.0
    inputs: Literal["generated", "samples"] = "generated"
    pessimistic: VerdictName | None = None
    culprit: Culprit | None = None
    worst: Culprit | None = None
    findings: tuple[VerdictFinding, ...] = ()
    ranges: Ranges | None = None
