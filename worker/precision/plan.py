"""The central value: which dtype each tensor has, and why. Frozen before anything is mutated, applied mechanically."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from worker.graph.dtype import HalfType
from worker.graph.node import Node, Slot
from worker.precision.attention import AttentionCore
from worker.precision.islands.base import Declined, Island
from worker.precision.report import Finding


class Cause(StrEnum):
    """Why a node has the dtype that it has."""

    ISLAND = "island"
    CORE = "bounded attention core"
    ILLEGAL = "no half form"
    CONSTANT = "a constant that half cannot hold"
    BETWEEN = "between FP32 values"
    TRUNK = "trunk"
    NO_FLOATS = "no FP32 values"


@dataclass(frozen=True, slots=True)
class Decision:
    """For one node: the schema variables in half (empty: all FP32), the cause, and the reason in words."""

    half: frozenset[str]
    cause: Cause
    reason: str

    @property
    def is_half(self) -> bool:
        return bool(self.half)


@dataclass(frozen=True, slots=True)
class Core:
    """An attention core with the dtype that was planned for it."""

    core: AttentionCore
    bounded: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PrecisionPlan:
    """`decisions` by node index. `half_tensors`: FP32 values of the upload that nodes will produce in half.
    `saturate`: constants to clamp, with the limit, in half and where one of `mask_nodes` reads them.
    `guard`: values to clamp where they are cast to half.
    """

    half: HalfType
    decisions: Mapping[int, Decision]
    half_tensors: frozenset[str]
    islands: tuple[Island, ...]
    cores: tuple[Core, ...]
    declined: tuple[Declined, ...]
    findings: tuple[Finding, ...]
    saturate: Mapping[str, float] = field(default_factory=dict)
    mask_nodes: frozenset[int] = field(default_factory=frozenset)
    guard: frozenset[str] = field(default_factory=frozenset)

    def wants_half(self, node: Node, slot: Slot) -> bool:
        """Whether the node reads or makes the FP32 value at this slot in half."""
        return slot.variable in self.decisions[node.index].half

    @property
    def all_fp32(self) -> bool:
        return not any(decision.is_half for decision in self.decisions.values())
