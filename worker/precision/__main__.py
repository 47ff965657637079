"""`python -m worker.precision`: one conversion in a process of its own; the request comes as JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worker.child import Emit, serve
from worker.precision.convert import convert
from worker.types import ConvertRequest


def handle(request: Mapping[str, Any], _emit: Emit) -> dict[str, Any]:
    """The conversion report as JSON. Nothing is emitted: a conversion is one step."""
    options = dict(request)
    source, target = Path(options.pop("source")), Path(options.pop("target"))
    for name in ("keep_fp32", "keep_trunk"):
        options[name] = tuple(options.get(name, ()))
    options["max_shapes"] = {name: tuple(shape) for name, shape in options.get("max_shapes", {}).items()}
    return convert(ConvertRequest(source, target, **options)).model_dump(mode="json")


if __name__ == "__main__":
    serve(handle)
