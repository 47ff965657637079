"""Conversion with range analysis: the converter, and a run of the model where it asks for one.

`python -m worker.conversion` does one conversion in a process of its own; the request comes as JSON.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from worker.child import Emit, serve
from worker.graph.meter import Meter
from worker.graph.save import Watch
from worker.precision.convert import NotMeasured, plan_model
from worker.precision.convert import convert as convert_file
from worker.precision.convert import preview as preview_file
from worker.precision.report import ConversionReport
from worker.precision.reporting import Planned
from worker.types import ConvertRequest


def convert(request: ConvertRequest, watch: Watch | None = None) -> ConversionReport:
    """As `worker.precision.convert.convert`; activations that may overflow are measured in FP32 first."""
    return convert_file(request, _measure, watch)


def preview(request: ConvertRequest) -> ConversionReport:
    """What `convert` would tell, as `worker.precision.convert.preview`; nothing is written."""
    return preview_file(request, _measure)


def plan(request: ConvertRequest) -> Planned:
    """What `convert` would do, as `worker.precision.convert.plan_model`."""
    return plan_model(request, _measure)


def _measure(source: Path, names: Collection[str]) -> Mapping[str, float]:
    from worker.verify.ranges import largest_magnitudes  # ONNX Runtime is imported only where it is needed
    from worker.verify.types import Unverifiable

    try:
        return largest_magnitudes(source, names)
    except Unverifiable as why:
        raise NotMeasured(str(why)) from why


def _handle(request: Mapping[str, Any], emit: Emit) -> dict[str, Any]:
    """`report`: the conversion report as JSON. `digests`: the sha256 of each file by path, if `hashed` was asked for.

    Emits how many bytes are written, of how many, and their rate.
    """
    options = dict(request)
    digests: dict[str, str] = {}
    watch = Watch(
        on_bytes=Meter(lambda done, total, rate: emit(_progress(done, total, rate))),
        on_digest=(lambda path, digest: digests.update({str(path): digest})) if options.pop("hashed", False) else None,
    )
    source, target = Path(options.pop("source")), Path(options.pop("target"))
    for name in ("keep_fp32", "keep_trunk"):
        options[name] = tuple(options.get(name, ()))
    options["max_shapes"] = {name: tuple(shape) for name, shape in options.get("max_shapes", {}).items()}
    report = convert(ConvertRequest(source, target, **options), watch)
    return {"report": report.model_dump(mode="json"), "digests": digests}


def _progress(done: int, total: int, rate: float) -> dict[str, Any]:
    return {"phase": "writing weights", "step": done, "of": total, "unit": "bytes", "rate": round(rate)}


if __name__ == "__main__":
    serve(_handle)
