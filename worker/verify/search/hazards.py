"""Candidates that must stay, by what was observed of them: overflow, or values close to it."""

from collections.abc import Mapping
from math import isinf, prod

from worker.graph.dtype import HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.ops import SUMS
from worker.verify.search.types import Candidate, Observation

_SHARE = 0.25
"""Other inputs may go further than the samples: so much of half's range is left to values that half will hold."""

_SQUARING_NORMS = frozenset(
    {"LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization", "LpNormalization"}
)


def hazards(graph: Graph, half: HalfType, every: tuple[Candidate, ...], seen: Observation) -> dict[int, str]:
    """By candidate number, why samples forbid to give it up."""
    found: dict[int, str] = {}
    for candidate in every:
        reason = candidate.obstacle or _observed(graph, half, candidate, seen)
        if reason is not None:
            found[candidate.number] = reason
    return found


def _observed(graph: Graph, half: HalfType, candidate: Candidate, seen: Observation) -> str | None:
    drift = seen.drifts.get(candidate.number)
    if drift is not None and isinf(drift.relative_l2):
        return f"in {half.name} it gives infinite or undefined values where FP32 does not"
    for node in candidate.nodes:
        for what, size in _sizes(graph, node, seen.peaks, seen.shapes):
            if size > half.max * _SHARE:
                return f"{what} of node {node.label!r} reaches {size:.3g} of {half.max:.5g}"
    return None


def _sizes(
    graph: Graph, node: Node, peaks: Mapping[str, float], shapes: Mapping[str, tuple[int, ...]]
) -> list[tuple[str, float]]:
    """What half must hold while the node computes, sums and squares inside an operator included: a GPU may accumulate
    in half."""
    sizes = [("a value", peaks[name]) for name in graph.float_outputs(node) if name in peaks]
    first = node.input(0)
    if node.op in _SQUARING_NORMS and first in peaks:
        sizes.append(("a square", peaks[first] ** 2))
    if node.op in SUMS and not node.is_a("ReduceSum") and first in shapes and node.output in shapes:
        count = prod(shapes[first]) / max(1, prod(shapes[node.output]))
        sizes.append(("a sum", peaks.get(node.output, 0.0) * count))
    return sizes
