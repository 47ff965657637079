"""Norms that are one operator."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings

_NORMS = frozenset(
    {
        "LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization", "LpNormalization",
        "MeanVarianceNormalization", "LRN",
        "SimplifiedLayerNormalization", "com.microsoft::SkipLayerNormalization", "com.microsoft::GroupNorm",
        "com.microsoft::SkipGroupNorm", "com.microsoft::SimplifiedLayerNormalization",
        "com.microsoft::SkipSimplifiedLayerNormalization", "com.microsoft::EmbedLayerNormalization",
    }
)  # fmt: skip
_FIRST_BATCH_NORM_WITH_OWN_STATISTICS = 15


@dataclass(frozen=True, slots=True)
class FusedNorm:
    """Normalization operators. BatchNormalization keeps FP32 statistics beside a half input from opset 15 on."""

    name: str = "normalization"
    modes: frozenset[str] = MINIMAL
    hazard: str = "squares overflow FP16 from 256 on, and a small eps or gamma rounds to zero"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if node in around.core or not graph.float_inputs(node):
                continue
            if node.op in _NORMS:
                yield Island(self.name, f"{node.op} of {node.input(0)!r}", self.hazard, (node,))
            elif node.is_a("BatchNormalization"):
                yield self._batch_norm(node)

    def _batch_norm(self, node: Node) -> Island | Declined:
        since = node.schema.since_version if node.schema else 0
        if since >= _FIRST_BATCH_NORM_WITH_OWN_STATISTICS:
            return Declined(self.name, node.label, "its statistics stay FP32 beside a half input")
        reason = f"BatchNormalization at opset {node.opset} must have its statistics in the dtype of its input"
        return Island(self.name, reason, self.hazard, (node,))
