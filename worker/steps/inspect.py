"""Inspect: what was built is what was asked for, and what that is."""

from dataclasses import replace

from pydantic import TypeAdapter

from service.builds.types import Proof
from service.errors import PrecisionNotBuilt
from worker.steps.context import Job, Work
from worker.steps.gates import BUILT_AS, bounded_cores, findings_of


def inspect(context: Job, work: Work) -> Work:
    """Raises PrecisionNotBuilt when half precision was asked for and the network has none, or far too little, and
    CheckFailed as the gates do."""
    _check_precision(context, work)
    found = findings_of(context, work)
    for finding in found:
        context.journal.note("{kind} at {where}: {detail}".format_map(finding))
    verification = replace(work.verification, findings=(*work.verification.findings, *found))
    work = work.with_(verification=verification)
    proof = proof_of(work)
    context.journal.note(f"fused attentions: {proof.fused_attentions} of {proof.attentions}")
    return work.with_(proof=proof)


def _check_precision(context: Job, work: Work) -> None:
    if work.built is None or work.report is None or not work.report["counts"]["half_tensors"]:
        return
    trunk = context.spec.trunk.value
    if not work.built.tensor_dtypes.get(BUILT_AS[trunk]):
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
            "inputs": verification.inputs,
            "pessimistic": verification.pessimistic,
            "culprit": verification.culprit["node"] if verification.culprit else None,
            "findings": tuple("{kind} at {where}: {detail}".format_map(found) for found in verification.findings),
            "half_tensor_share": share,
            "attentions": bounded_cores(report) if report else None,
            "fused_attentions": built.fused_attentions if built else None,
            "builder_warnings": tuple(message.text for message in messages if message.severity == "warning"),
        }
    )
