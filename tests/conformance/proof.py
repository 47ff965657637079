"""What a conversion has to stand: the checker, public values as they were, closeness to FP32, TensorRT's parser."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto

from service.errors import ProblemError
from worker.conversion import convert
from worker.graph.load import load
from worker.graph.save import Output, save
from worker.precision.report import ConversionReport
from worker.types import ConvertRequest
from worker.verify.emulate import emulate

TOLERANCE = {"fp16": 2e-2, "bf16": 6e-2}
"""Largest error, as a share of the largest value of an output."""

_REPOSITORY = Path(__file__).parents[2]
_SMALLEST_SCALE = 1e-3

Run = Callable[[ModelProto, Mapping[str, Any]], list[Any]]


class Fault(Exception):  # noqa: N818 -- collected by name, not raised at anybody
    """What is wrong with a conversion."""


def converted(source: Path, target: Path, **options: Any) -> ConversionReport:
    """Converts, and checks what can be checked without running. Raises Fault."""
    try:
        report = convert(ConvertRequest(source, target, **options))
    except ProblemError as error:
        raise Fault(f"is not converted: {error}") from error
    before, after = onnx.load(source), onnx.load(target)
    if _public(before) != _public(after):
        raise Fault("has other public inputs or outputs")
    fault = _checker_fault(after)
    if fault is not None and _checker_fault(before) is None:
        raise Fault(f"is not valid: {fault}")
    return report


def emulated(target: Path) -> ModelProto:
    """The converted model with half emulated in FP32."""
    skeleton = load(target)
    emulate(skeleton)
    path = target.with_suffix(".emulated.onnx")
    save(Output(skeleton), path)
    return onnx.load(path)


def check_close(expected: Sequence[Any], got: Sequence[Any], trunk: str) -> None:
    """Raises Fault unless shapes, dtypes, what is finite and all values agree."""
    pairs = list(zip(_flat(expected), _flat(got), strict=True))
    for index, (reference, value) in enumerate(pairs):
        if reference.shape != value.shape or reference.dtype != value.dtype:
            raise Fault(
                f"output {index} was {reference.dtype}{list(reference.shape)}, is {value.dtype}{list(value.shape)}"
            )
        if reference.dtype.kind == "f":
            _check_floats(index, reference.astype(np.float64), value.astype(np.float64), TOLERANCE[trunk])
        elif not np.array_equal(reference, value):
            raise Fault(f"output {index} differs in {np.mean(reference != value):.1%} of its elements")


def _check_floats(index: int, expected: NDArray[np.float64], got: NDArray[np.float64], tolerance: float) -> None:
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(got)):
        raise Fault(f"output {index} is finite elsewhere than in FP32")
    if not finite.any():
        return
    error = float(np.abs(expected[finite] - got[finite]).max())
    scale = max(float(np.abs(expected[finite]).max()), _SMALLEST_SCALE)
    if error > tolerance * scale:
        raise Fault(f"output {index} is off by {error:.3g} of {scale:.3g}")


def refusals(paths: Sequence[Path]) -> dict[Path, str]:
    """What TensorRT's strongly typed parser says against files, in one child; those that it accepts are left out."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.conformance.parse_child"],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        check=False,
        cwd=_REPOSITORY,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
    if len(answers) != len(paths):
        raise Fault(f"the parser died of {paths[len(answers)]}: {child.stderr[-1000:]}")
    return {path: answer["refusal"] for path, answer in zip(paths, answers, strict=True) if answer["refusal"]}


def _public(model: ModelProto) -> list[tuple[str, bytes]]:
    """Inputs that a caller must give, and outputs; before IR 4 weights had to be listed as inputs too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in weights] + list(model.graph.output)
    return [(value.name, value.type.SerializeToString()) for value in values]


def _checker_fault(model: ModelProto) -> str | None:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return None


def _flat(values: Any) -> list[NDArray[Any]]:
    """Sequences and optionals come as lists and None."""
    if values is None:
        return []
    if isinstance(values, (list, tuple)):
        return [array for value in values for array in _flat(value)]
    return [np.asarray(values)]
