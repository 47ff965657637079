"""The conversion report: what became of a graph, and why. JSON with a version; every island has its reason."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IslandReport(_Value):
    """Nodes kept in FP32 together. `nodes` are names (or `op:first-output` where a node has none)."""

    family: str
    reason: str
    hazard: str
    nodes: tuple[str, ...]
    op_types: dict[str, int]


class AttentionReport(_Value):
    """One attention core (QK^T -> scale/mask -> softmax -> PV) and the dtype that was planned for it."""

    softmax: str
    dtype: str
    bounded: bool
    reason: str
    nodes: tuple[str, ...]


class Finding(_Value):
    """A hazard that was met, a pattern that declined, or a fallback that was taken: nothing is silent."""

    kind: str
    where: str
    detail: str


class KeptWeight(_Value):
    """A float weight that stays FP32, and why its first reader wants it so. `size` is bytes.

    `cause` is the family of the reader's island, or what else keeps it in FP32.
    """

    name: str
    shape: tuple[int, ...]
    size: int
    cause: str
    reason: str
    readers: tuple[str, ...]


class NodeRun(_Value):
    """`nodes` neighbours of one kind in the converted graph. `other` nodes handle no float."""

    kind: Literal["half", "fp32", "cast", "other"]
    nodes: int


class Counts(_Value):
    """Tensors are float tensors that nodes produce; weights are float initializers and constants."""

    nodes_before: int
    nodes_after: int
    casts_before: int
    casts_after: int
    casts_added: int
    casts_removed: int
    half_tensors: int
    float_tensors: int
    half_tensor_share: float
    half_weights: int
    float_weights: int
    weight_bytes_before: int
    weight_bytes_after: int


class CandidateReport(_Value):
    """An island that mode `auto` weighed. `cost` is that of its nodes in FP32, in the unit of `AutoReport`.

    `drift`: relative L2 error of its results in half, their inputs being those of FP32; None where it was not
    measured or is not finite. `reason`: why it was kept, or given up.
    """

    family: str
    island: str
    nodes: int
    cost: float
    drift: float | None
    kept: bool
    reason: str


class FrontPoint(_Value):
    """A choice that no other choice seen beats in both cost and accuracy. `islands`: how many were kept.

    `cosine` and `relative_l2` are those of the worst output; `nonfinite` counts elements that are finite in FP32 alone.
    """

    islands: int
    cost: float
    cosine: float
    relative_l2: float | None
    nonfinite: int
    passed: bool


class Recipe(_Value):
    """Conversion options that give the result of a search again, byte for byte."""

    mode: str
    trunk: str
    bounded_attention: bool
    keep_fp32: tuple[str, ...] = ()
    keep_trunk: tuple[str, ...] = ()


class AutoReport(_Value):
    """The search of mode `auto`. Costs are bytes moved in FP32, 64 operations counting as one byte.

    `outcome`: `met` the target; `missed` it, although all islands were kept; `fell back` to mode rope without a search.
    `runs` counts runs of the whole model. `front` goes from the cheapest choice to the most accurate one.
    """

    outcome: Literal["met", "missed", "fell back"]
    reason: str
    target_cosine: float
    recipe: Recipe
    cosine: float | None = None
    cost: float | None = None
    rope_cost: float | None = None
    runs: int = 0
    front: tuple[FrontPoint, ...] = ()
    candidates: tuple[CandidateReport, ...] = ()


class ConversionReport(_Value):
    """Schema version 1. `islands_by_family` counts islands; `dtypes_*` count tensors by ONNX dtype name.

    `node_runs` is the converted graph in the order of its file, without constants; subgraphs follow the main graph.
    `auto` is there in mode `auto` alone.
    """

    schema_version: int = 1
    converter_version: str
    mode: str
    trunk: str
    bounded_attention: bool
    opset_before: dict[str, int]
    opset_after: dict[str, int]
    counts: Counts
    dtypes_before: dict[str, int]
    dtypes_after: dict[str, int]
    islands_by_family: dict[str, int]
    islands: tuple[IslandReport, ...]
    attentions: tuple[AttentionReport, ...]
    findings: tuple[Finding, ...]
    kept_weights: tuple[KeptWeight, ...] = ()
    node_runs: tuple[NodeRun, ...] = ()
    auto: AutoReport | None = None
    seconds: float
