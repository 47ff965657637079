"""Gates after the build: whether what was built is what was planned. Each difference is a finding; severe ones fail."""

from collections.abc import Iterator, Mapping
from typing import Any

from service.errors import CheckFailed, PrecisionNotBuilt
from worker.steps.context import Job, Work
from worker.types import EngineResult

# TensorRT's names of the trunk dtypes.
BUILT_AS = {"fp16": "half", "bf16": "bf16"}
_FLOATS = ("half", "bf16", "float")
_FEWER, _FAR_FEWER = 0.8, 0.25
"""Of the planned share of half tensors. TensorRT counts its layers' tensors, not ONNX's, so equality means nothing."""

Found = dict[str, str]


def findings_of(context: Job, work: Work) -> tuple[Found, ...]:
    """Findings as `kind`, `where` and `detail`. Raises PrecisionNotBuilt, and CheckFailed for a norm that overflows
    where nobody could verify that it does not and a missed target is fatal."""
    if work.built is None:
        return ()
    found = [*_overflows(work.built)]
    _refuse_unverified(context, work, found)
    if work.report is None or not work.report["counts"]["half_tensors"]:
        return tuple(found)
    return (*found, *_share(context, work.built, work.report), *_fusion(work.built, work.report))


def bounded_cores(report: Mapping[str, Any]) -> int:
    """The attention cores that were handed to the trunk dtype."""
    return sum(attention["bounded"] for attention in report["attentions"])


def _overflows(built: EngineResult) -> Iterator[Found]:
    for message in built.messages:
        if message.kind in ("norm-overflow", "weights-out-of-range"):
            yield {"kind": message.kind, "where": "builder", "detail": message.text}


def _refuse_unverified(context: Job, work: Work, found: list[Found]) -> None:
    norms = [finding["detail"] for finding in found if finding["kind"] == "norm-overflow"]
    verified = work.verification.verdict == "passed"
    if norms and not verified and context.spec.accuracy.failure_is_fatal:
        raise CheckFailed(
            f"TensorRT warns that a norm may overflow, and the accuracy is {work.verification.verdict}: {norms[0]} "
            "Keep the norm in FP32 with `keep_fp32`, or set `accuracy.on_fail` to `warn`.",
            findings=found,
        )


def _share(context: Job, built: EngineResult, report: Mapping[str, Any]) -> Iterator[Found]:
    trunk = context.spec.trunk.value
    half = built.tensor_dtypes.get(BUILT_AS[trunk], 0)
    floats = sum(built.tensor_dtypes.get(name, 0) for name in _FLOATS)
    planned = report["counts"]["half_tensor_share"]
    share = half / floats if floats else 0.0
    if share < _FAR_FEWER * planned:
        raise PrecisionNotBuilt(
            f"{trunk} was asked for and {planned:.0%} of the converted graph's float tensors have it, but {share:.0%} "
            f"of the built network's: {dict(built.tensor_dtypes)}. Report this with the build's log and report.",
            tensor_dtypes=dict(built.tensor_dtypes),
        )
    if share < _FEWER * planned:
        detail = f"{share:.0%} of the built network's float tensors are {trunk}; {planned:.0%} were planned"
        yield {"kind": "fewer-half-tensors", "where": "engine", "detail": detail}


def _fusion(built: EngineResult, report: Mapping[str, Any]) -> Iterator[Found]:
    bounded = bounded_cores(report)
    if built.fused_attentions is not None and built.fused_attentions < bounded:
        left = bounded - built.fused_attentions
        detail = f"{left} of {bounded} attention cores in the trunk dtype have no fused kernel in the engine"
        yield {"kind": "attention-not-fused", "where": "engine", "detail": detail}
