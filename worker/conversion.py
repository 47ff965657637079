"""Conversion with range analysis: the converter, and a run of the model where it asks for one.

`python -m worker.conversion` does one conversion in a process of its own; the request comes as JSON.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from worker.child import Emit, serve
from worker.precision.convert import NotMeasured, plan_model
from worker.precision.convert import convert as convert_file
from worker.precision.convert import preview as preview_file
from worker.precision.report import ConversionReport
from worker.precision.reporting import Planned
from worker.types import ConvertRequest


def convert(request: ConvertRequest) -> ConversionReport:
    """As `worker.precision.convert.convert`; activations that may overflow are measured in FP32 first."""
    return convert_file(request, _measure)


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


def _handle(request: Mapping[str, Any], _emit: Emit) -> dict[str, Any]:
    """The conversion report as JSON. Nothing is emitted: a conversion is one step."""
    options = dict(request)
    source, target = Path(options.pop("source")), Path(options.pop("target"))
    for name in ("keep_fp32", "keep_trunk"):
        options[name] = tuple(options.get(name, ()))
    options["max_shapes"] = {name: tuple(shape) for name, shape in options.get("max_shapes", {}).items()}
    return convert(ConvertRequest(source, target, **options)).model_dump(mode="json")


if __name__ == "__main__":
    serve(_handle)
