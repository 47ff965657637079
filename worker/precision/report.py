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


class ConversionReport(_Value):
    """Schema version 1. `islands_by_family` counts islands; `dtypes_*` count tensors by ONNX dtype name.

    `node_runs` is the converted graph in the order of its file, without constants; subgraphs follow the main graph.
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
    seconds: float
