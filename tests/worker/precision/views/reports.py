"""A report with one of everything, to be varied."""

from typing import Any

from worker.precision.report import (
    AttentionReport,
    AutoReport,
    CandidateReport,
    ConversionReport,
    Counts,
    Finding,
    FrontPoint,
    IslandReport,
    KeptWeight,
    NodeRun,
    Recipe,
)

COUNTS = Counts(
    nodes_before=10,
    nodes_after=12,
    casts_before=1,
    casts_after=3,
    casts_added=2,
    casts_removed=0,
    half_tensors=6,
    float_tensors=8,
    half_tensor_share=0.75,
    half_weights=3,
    float_weights=1,
    weight_bytes_before=4_000_000,
    weight_bytes_after=2_000_004,
)

AUTO = AutoReport(
    outcome="met",
    reason="2 of 9 islands of mode rope are kept",
    target_cosine=0.999,
    recipe=Recipe(mode="rope", trunk="fp16", bounded_attention=True),
    cosine=0.9995,
    cost=25.0,
    rope_cost=100.0,
    runs=7,
    front=(
        FrontPoint(islands=0, cost=5.0, cosine=0.5, relative_l2=1.0, nonfinite=3, passed=False),
        FrontPoint(islands=2, cost=25.0, cosine=0.9995, relative_l2=0.03, nonfinite=0, passed=True),
    ),
    candidates=(
        CandidateReport(
            family="softmax",
            island="softmax outside a core",
            nodes=1,
            cost=20.0,
            drift=None,
            kept=True,
            reason="it overflows",
        ),
    ),
)


def island(family: str = "normalization", reason: str = "mean of squares of 'x'", nodes: int = 2) -> IslandReport:
    names = tuple(f"/{family}/{reason[-3:]}/{index}" for index in range(nodes))
    return IslandReport(family=family, reason=reason, hazard="squares overflow", nodes=names, op_types={"Mul": nodes})


def report(**changes: Any) -> ConversionReport:
    fields = {
        "converter_version": "1",
        "mode": "rope",
        "trunk": "fp16",
        "bounded_attention": True,
        "opset_before": {"": 17},
        "opset_after": {"": 17},
        "counts": COUNTS,
        "dtypes_before": {"float": 9, "int64": 2},
        "dtypes_after": {"float": 3, "float16": 6, "int64": 2},
        "islands_by_family": {"normalization": 1},
        "islands": (island(),),
        "attentions": (AttentionReport(softmax="sm", dtype="fp16", bounded=True, reason="fuses", nodes=("qk", "sm")),),
        "findings": (
            Finding(kind="guarded", where="mask", detail="clamped where it is cast"),
            Finding(kind="declined: softmax", where="sm", detail="it is in a core"),
        ),
        "kept_weights": (
            KeptWeight(name="eps", shape=(), size=4, cause="normalization", reason="norm", readers=("add",)),
        ),
        "node_runs": (NodeRun(kind="half", nodes=6), NodeRun(kind="cast", nodes=2), NodeRun(kind="fp32", nodes=2)),
        "seconds": 0.5,
    }
    return ConversionReport(**{**fields, **changes})
