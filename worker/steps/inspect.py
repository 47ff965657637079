"""Inspect: what was built is what was asked for, and what that is."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from service.builds.types import Proof
from service.errors import PrecisionNotBuilt
from worker.steps.context import Job, Work

# TensorRT's names of the trunk dtypes.
_BUILT_AS = {"fp16": "half", "bf16": "bf16"}


def inspect(context: Job, work: Work) -> Work:
    """Raises PrecisionNotBuilt when half precision was asked for and the network has none."""
    _check_precision(context, work)
    proof = proof_of(work)
    context.journal.note(f"fused attentions: {proof.fused_attentions} of {proof.attentions}")
    return work.with_(proof=proof)


def _check_precision(context: Job, work: Work) -> None:
    if work.built is None or work.report is None or not work.report["counts"]["half_tensors"]:
        return
    trunk = context.spec.trunk.value
    if not work.built.tensor_dtypes.get(_BUILT_AS[trunk]):
        raise PrecisionNotBuilt(
            f"{trunk} was asked for and the converted graph has it, but the built network has none: "
            f"{dict(work.built.tensor_dtypes)}. Report this with the build's log and report.",
            tensor_dtypes=dict(work.built.tensor_dtypes),
        )


def proof_of(work: Work) -> Proof:
    """The figures of the report, of the verification and of the engine, as far as there are any."""
    verification, report, built = work.verification, work.report, work.built
    share = report["counts"]["half_tensor_share"] if report else None
    messages = built.messages if built else work.network.messages if work.network else ()
    return TypeAdapter(Proof).validate_python(
        {
            "verdict": verification.verdict,
            "reason": verification.reason,
            "cosine": verification.cosine,
            "half_tensor_share": share,
            "attentions": _bounded(report) if report else None,
            "fused_attentions": built.fused_attentions if built else None,
            "builder_warnings": tuple(message.text for message in messages if message.severity == "warning"),
        }
    )


def _bounded(report: Mapping[str, Any]) -> int:
    return sum(attention["bounded"] for attention in report["attentions"])
