"""The report of a build: what the converter said, with what was found out since."""

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from worker.precision.report import ConversionReport
from worker.precision.views.html import render_html
from worker.steps.context import Work
from worker.steps.inspect import proof_of
from worker.types import EngineResult, NetworkFacts

_SHOWN = {
    *("inputs", "outputs", "profiles", "tensor_dtypes", "fused_attentions", "seconds", "peak_rss", "messages"),
    "workspace_bytes",
}


def inspection_of(built: EngineResult) -> dict[str, Any]:
    """What reading the engine back showed, as the manifest and the report hold it."""
    return _json(TypeAdapter(EngineResult), built, _SHOWN)


def report_of(work: Work) -> dict[str, Any]:
    """The conversion report, with what was found out since: verification, network, builder."""
    converted = work.report or {"schema_version": 1, "mode": "none", "islands": [], "attentions": [], "findings": []}
    return {
        **converted,
        "verification": asdict(work.verification),
        "network": _json(TypeAdapter(NetworkFacts), work.network) if work.network else None,
        "engine": inspection_of(work.built) if work.built else None,
    }


def page_of(work: Work, title: str) -> str:
    """The same for people, as one HTML file."""
    report = None if work.report is None else ConversionReport.model_validate(work.report)
    return render_html(title, report, proof_of(work), asdict(work.verification))


def _json(adapter: TypeAdapter[Any], value: Any, include: set[str] | None = None) -> dict[str, Any]:
    encoded: dict[str, Any] = adapter.dump_python(value, mode="json", include=include)
    return encoded
