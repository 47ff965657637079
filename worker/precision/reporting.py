"""Puts the conversion report together from what was planned and what was done."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto, TensorProto

from worker.graph import walk
from worker.graph.dtype import FLOAT
from worker.graph.graph import Graph
from worker.graph.types import Types
from worker.precision.islands import Island
from worker.precision.node_runs import node_runs
from worker.precision.plan import Core, PrecisionPlan
from worker.precision.planner import Options
from worker.precision.report import AttentionReport, ConversionReport, Counts, Finding, IslandReport, KeptWeight
from worker.precision.rewrite import Rewritten
from worker.types import ConvertRequest
from worker.version import CONVERTER_VERSION


@dataclass(frozen=True, slots=True)
class Before:
    """What the rewrite changes, counted while it is still there."""

    opsets: dict[str, int]
    nodes: int
    casts: int
    weights: int
    weight_bytes: int
    float_tensors: int
    dtypes: dict[str, int]

    @classmethod
    def of(cls, graph: Graph) -> "Before":
        nodes, casts = _count_nodes(graph.model)
        weights, weight_bytes = _count_weights(graph.model, {TensorProto.FLOAT})
        return cls(
            opsets=walk.opsets(graph.model),
            nodes=nodes + graph.stripped_casts,
            casts=casts + graph.stripped_casts,
            weights=weights,
            weight_bytes=weight_bytes,
            float_tensors=len(_float_values(graph)),
            dtypes=_dtypes(graph.types),
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """A model that was read, and what is to become of it. The rewrite mutates `graph`.

    `options` and `measured` are what the plan was made from.
    """

    graph: Graph
    options: Options
    measured: Mapping[str, float]
    plan: PrecisionPlan
    before: Before
    kept_weights: tuple[KeptWeight, ...]


def describe(
    request: ConvertRequest, planned: Planned, rewritten: Rewritten | None, types: Types, seconds: float
) -> ConversionReport:
    """`rewritten` is None when the upload is taken as it is; `types` are those of the result."""
    before, plan = planned.before, planned.plan
    model = planned.graph.model if rewritten is None else rewritten.output.skeleton.model
    return ConversionReport(
        converter_version=CONVERTER_VERSION,
        mode=request.mode,
        trunk=request.trunk,
        bounded_attention=request.bounded_attention,
        opset_before=before.opsets,
        opset_after=before.opsets if rewritten is None else walk.opsets(model),
        counts=_counts(before, plan, rewritten),
        dtypes_before=before.dtypes,
        dtypes_after=_dtypes(types),
        islands_by_family=dict(sorted(Counter(island.family for island in plan.islands).items())),
        islands=tuple(island_report(island) for island in plan.islands),
        attentions=tuple(attention_report(core, plan) for core in plan.cores),
        findings=(
            *plan.findings,
            *(Finding(kind=f"declined: {d.family}", where=d.where, detail=d.reason) for d in plan.declined),
        ),
        kept_weights=planned.kept_weights,
        node_runs=node_runs(model, types),
        seconds=round(seconds, 3),
    )


def _counts(before: Before, plan: PrecisionPlan, rewritten: Rewritten | None) -> Counts:
    half = len(plan.half_tensors) if rewritten is not None else 0
    nodes, casts, added, removed = before.nodes, before.casts, 0, 0
    half_weights, float_weights, weight_bytes = 0, before.weights, before.weight_bytes
    if rewritten is not None:
        model = rewritten.output.skeleton.model
        nodes, casts = _count_nodes(model)
        added, removed = rewritten.casts_added, rewritten.casts_removed
        half_weights, half_bytes = _count_weights(model, {plan.half.onnx})
        float_weights, float_bytes = _count_weights(model, {TensorProto.FLOAT})
        weight_bytes = half_bytes + float_bytes
    return Counts(
        nodes_before=before.nodes,
        nodes_after=nodes,
        casts_before=before.casts,
        casts_after=casts,
        casts_added=added,
        casts_removed=removed,
        half_tensors=half,
        float_tensors=before.float_tensors,
        half_tensor_share=round(half / before.float_tensors, 4) if before.float_tensors else 0.0,
        half_weights=half_weights,
        float_weights=float_weights,
        weight_bytes_before=before.weight_bytes,
        weight_bytes_after=weight_bytes,
    )


def island_report(island: Island) -> IslandReport:
    return IslandReport(
        family=island.family,
        reason=island.reason,
        hazard=island.hazard,
        nodes=tuple(node.label for node in island.nodes),
        op_types=dict(sorted(Counter(node.op for node in island.nodes).items())),
    )


def attention_report(core: Core, plan: PrecisionPlan) -> AttentionReport:
    return AttentionReport(
        softmax=core.core.softmax.label,
        dtype=plan.half.name if core.bounded else "fp32",
        bounded=core.bounded,
        reason=core.reason,
        nodes=tuple(node.label for node in core.core.nodes),
    )


def _float_values(graph: Graph) -> list[str]:
    """FP32 values that nodes compute: constants are weights, not values."""
    return [
        slot.name
        for node in graph.nodes
        if not node.is_a("Constant")
        for slot in node.outputs
        if graph.types.get(slot.name) == FLOAT
    ]


def _dtypes(types: Types) -> dict[str, int]:
    return dict(sorted(Counter(text.removeprefix("tensor(").removesuffix(")") for text in types.values()).items()))


def _count_nodes(model: ModelProto) -> tuple[int, int]:
    nodes = [node.op_type for graph in walk.graphs(model.graph) for node in graph.node if node.op_type != "Constant"]
    return len(nodes), nodes.count("Cast")


def _count_weights(model: ModelProto, dtypes: set[int]) -> tuple[int, int]:
    tensors = [tensor for tensor in walk.tensors(model) if tensor.data_type in dtypes]
    return len(tensors), sum(walk.nbytes(tensor) for tensor in tensors)
