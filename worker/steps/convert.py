"""Convert: the uploaded graph with a half-precision trunk and FP32 islands, by `worker.conversion` in a child."""

from pathlib import Path
from typing import Any

from service.builds.types import Mode
from worker.child import run_child
from worker.steps.context import GRAPH_FILE, Job, Work

_SEARCH_SHARE = 0.75
"""Of what a child may use: a search of mode auto gives up before the child is stopped, so that mode rope follows."""


def convert(context: Job, work: Work) -> Work:
    """Raises ProblemError with the converter's own problem, and the errors of `run_child`."""
    if context.spec.mode is Mode.NONE:
        context.journal.note("mode none: the graph is taken as uploaded")
        return work
    target = context.folder / "converted" / GRAPH_FILE
    target.parent.mkdir()
    answer = run_child(
        "worker.conversion",
        _request(context, str(target)),
        on_event=context.journal.take,
        timeout=context.seconds,
        should_stop=context.should_stop,
        memory_bytes=context.memory_bytes,
    )
    report = answer["report"]
    for finding in report["findings"]:
        context.journal.note(f"{finding['kind']} at {finding['where']}: {finding['detail']}")
    context.journal.note(f"islands: {report['islands_by_family']}")
    digests = {Path(path): digest for path, digest in answer["digests"].items()}
    return work.with_(graph=target, report=report, digests=digests)


def _request(context: Job, target: str) -> dict[str, Any]:
    spec = context.spec
    return {
        "source": str(context.source),
        "target": target,
        "mode": spec.mode.value,
        "trunk": spec.trunk.value,
        "bounded_attention": spec.bounded_attention,
        "keep_fp32": list(spec.keep_fp32),
        "keep_trunk": list(spec.keep_trunk),
        "target_cosine": spec.accuracy.target_cosine,
        "profiles": [
            {name: shape.model_dump(mode="json") for name, shape in profile.items()} for profile in spec.profiles
        ],
        "samples": [str(path) for path in context.samples],
        "search_seconds": context.seconds * _SEARCH_SHARE,
        "search_memory_bytes": int(context.memory_bytes * _SEARCH_SHARE),
        "hashed": context.publishes,
    }
