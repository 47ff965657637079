"""Conversion with what runs of the model tell: ranges where the converter asks for them, and the search of mode auto.

`python -m worker.conversion` does one conversion in a process of its own; the request comes as JSON.
"""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from worker.child import Emit, serve
from worker.graph.meter import Meter
from worker.graph.save import Watch
from worker.precision.convert import NotMeasured, plan_model
from worker.precision.convert import convert as convert_file
from worker.precision.convert import preview as preview_file
from worker.precision.report import AutoReport, ConversionReport, Finding
from worker.precision.reporting import Planned
from worker.types import ConvertRequest, ShapeTriple

AUTO = "auto"

Progress = Callable[[str, int, int], None]


def convert(request: ConvertRequest, watch: Watch | None = None, progress: Progress | None = None) -> ConversionReport:
    """As `worker.precision.convert.convert`; activations that may overflow are measured in FP32 first.

    Mode `auto` searches, and converts by the recipe that it found; `progress` hears (phase, step, of) of the search.
    """
    started = time.monotonic()
    chosen, auto = _chosen(request, progress)
    return _with_search(convert_file(chosen, _measure, watch), auto, started)


def preview(request: ConvertRequest) -> ConversionReport:
    """What `convert` would tell, as `worker.precision.convert.preview`; nothing is written."""
    started = time.monotonic()
    chosen, auto = _chosen(request)
    return _with_search(preview_file(chosen, _measure), auto, started)


def plan(request: ConvertRequest) -> Planned:
    """What `convert` would do, as `worker.precision.convert.plan_model`. Of mode `auto`, the plan that it chose."""
    return plan_model(_chosen(request)[0], _measure)


def _chosen(request: ConvertRequest, progress: Progress | None = None) -> tuple[ConvertRequest, AutoReport | None]:
    if request.mode != AUTO:
        return request, None
    from worker.verify.search.search import search  # ONNX Runtime is imported only where it is needed

    return search(request, _measure, progress=progress)


def _with_search(report: ConversionReport, auto: AutoReport | None, started: float) -> ConversionReport:
    if auto is None:
        return report
    told = [] if auto.outcome == "met" else [Finding(kind=f"auto {auto.outcome}", where="model", detail=auto.reason)]
    return report.model_copy(
        update={
            "mode": AUTO,
            "auto": auto,
            "findings": (*told, *report.findings),
            "seconds": round(time.monotonic() - started, 3),
        }
    )


def _measure(source: Path, names: Collection[str]) -> Mapping[str, float]:
    from worker.verify.ranges import largest_magnitudes  # ONNX Runtime is imported only where it is needed
    from worker.verify.types import Unverifiable

    try:
        return largest_magnitudes(source, names)
    except Unverifiable as why:
        raise NotMeasured(str(why)) from why


def _handle(request: Mapping[str, Any], emit: Emit) -> dict[str, Any]:
    """`report`: the conversion report as JSON. `digests`: the sha256 of each file by path, if `hashed` was asked for.

    Emits how far a search is; then how many bytes are written, of how many, and their rate.
    """
    options = dict(request)
    digests: dict[str, str] = {}
    watch = Watch(
        on_bytes=Meter(lambda done, total, rate: emit(_progress(done, total, rate))),
        on_digest=(lambda path, digest: digests.update({str(path): digest})) if options.pop("hashed", False) else None,
    )

    def progress(phase: str, step: int, of: int) -> None:
        emit({"phase": phase, "step": step, "of": of})

    report = convert(_request(options), watch, progress)
    return {"report": report.model_dump(mode="json"), "digests": digests}


def _request(options: dict[str, Any]) -> ConvertRequest:
    source, target = Path(options.pop("source")), Path(options.pop("target"))
    for name in ("keep_fp32", "keep_trunk"):
        options[name] = tuple(options.get(name, ()))
    options["samples"] = tuple(map(Path, options.get("samples", ())))
    options["profiles"] = tuple(_profile(profile) for profile in options.get("profiles", ()))
    return ConvertRequest(source, target, **options)


def _profile(profile: Mapping[str, Mapping[str, Any]]) -> dict[str, ShapeTriple]:
    return {name: (tuple(each["min"]), tuple(each["opt"]), tuple(each["max"])) for name, each in profile.items()}


def _progress(done: int, total: int, rate: float) -> dict[str, Any]:
    return {"phase": "writing weights", "step": done, "of": total, "unit": "bytes", "rate": round(rate)}


if __name__ == "__main__":
    serve(_handle)
