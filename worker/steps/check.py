"""Check: TensorRT's strongly typed parser takes the graph, and under half emulation it computes what FP32 did."""

from dataclasses import fields
from typing import Any

from service.builds.types import Mode
from service.errors import CheckFailed, ChildCrashed, ChildTimeout, ResourceLimit
from worker.child import run_child
from worker.engine.run import parse_network
from worker.steps.context import Job, Verification, Work


def check(context: Job, work: Work) -> Work:
    """Raises the parser's refusal, and CheckFailed for a graph that is broken or too far from FP32."""
    network = parse_network(
        work.graph,
        context.toolchain,
        on_event=context.journal.take,
        timeout=context.seconds,
        should_stop=context.should_stop,
        memory_bytes=context.memory_bytes,
    )
    verification = _verify(context, work)
    context.journal.note(f"accuracy: {verification.verdict}, cosine {verification.cosine}, {verification.reason or ''}")
    for finding in verification.findings:
        context.journal.note("{kind} at {where}: {detail}".format_map(finding))
    enforce(context, verification)
    return work.with_(network=network, verification=verification)


def _verify(context: Job, work: Work) -> Verification:
    if context.spec.mode is Mode.NONE:
        return Verification(reason="the graph was built as uploaded, so there is nothing to compare")
    try:
        answer = run_child(
            "worker.verify",
            _request(context, work),
            on_event=context.journal.take,
            timeout=context.seconds,
            should_stop=context.should_stop,
            memory_bytes=context.memory_bytes,
        )
    except (ChildCrashed, ChildTimeout, ResourceLimit) as error:
        # The judge failed, not the graph: the build goes on and says that nobody compared.
        return Verification(reason=f"verification ended early: {error.detail}")
    known = {field.name for field in fields(Verification)}
    return Verification(**{name: _frozen(value) for name, value in answer.items() if name in known})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _request(context: Job, work: Work) -> dict[str, Any]:
    spec = context.spec
    return {
        "source": str(context.source),
        "converted": str(work.graph),
        "trunk": spec.trunk.value,
        "profiles": [
            {name: shape.model_dump(mode="json") for name, shape in profile.items()} for profile in spec.profiles
        ],
        "target_cosine": spec.accuracy.target_cosine,
        "seed": 0,
        "samples": [str(path) for path in context.samples],
        "pessimistic": True,
        "ranges": True,
    }


def enforce(context: Job, verification: Verification) -> None:
    """Raises CheckFailed for overflow in any case, for mere inaccuracy only when the spec makes it fatal."""
    if verification.verdict != "failed":
        return
    evidence = {"outputs": list(verification.outputs), "culprit": verification.culprit}
    first = " It begins at node {node!r} ({op}).".format_map(verification.culprit) if verification.culprit else ""
    broken = [output["name"] for output in verification.outputs if output["nonfinite"]]
    if broken:
        raise CheckFailed(
            f"Under half precision the outputs {', '.join(broken)} have inf or NaN where FP32 has none.{first} Keep "
            "the nodes that overflow in FP32 with `keep_fp32`, use trunk bf16, or mode full.",
            **evidence,
        )
    if context.spec.accuracy.failure_is_fatal:
        raise CheckFailed(
            f"The converted graph is too far from FP32 ({verification.reason}). Lower `accuracy.target_cosine`, or "
            "keep more nodes in FP32.",
            **evidence,
        )
