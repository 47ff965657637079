"""The contract of the operator tests: each model that runs in FP32 converts, in every mode, and stays right."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from tests.conformance.operator_suite import Case, float_cases, run
from tests.conformance.proof import Fault, check_close, converted, emulated, refusals

CHUNKS = 16
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "minimal": {"mode": "minimal"},
    "rope": {"mode": "rope"},
    "full": {"mode": "full"},
    "forced": {"mode": "minimal", "keep_trunk": ("*",)},
}
"""`forced` puts into half what can be: a model of one operator between FP32 inputs and outputs stays FP32 otherwise."""

NOT_CLOSE: dict[tuple[str, str, str], str] = {
    (
        "node/test_tan",
        "minimal",
        "bf16",
    ): "the angle of a tangent is no island in minimal, and near its poles BF16 is far off",
}
"""(model, configuration, trunk) -> why its values may differ from FP32."""


@dataclass(frozen=True, slots=True)
class Converted:
    case: Case
    configuration: str
    path: Path


def faults(chunk: int, trunk: str, folder: Path) -> dict[str, str]:
    """What is wrong, by model and configuration."""
    found: dict[str, str] = {}
    done: list[Converted] = []
    for case in float_cases()[chunk::CHUNKS]:
        for configuration, outcome in _convert(case, trunk, folder):
            if isinstance(outcome, Fault):
                found[f"{case.label} {configuration}"] = str(outcome)
            else:
                done.append(Converted(case, configuration, outcome))
    return {**found, **_parser_faults(done)}


def _convert(case: Case, trunk: str, folder: Path) -> Iterator[tuple[str, Path | Fault]]:
    model = onnx.load(case.model)
    feed = case.inputs(model)
    try:
        expected = run(model, feed)
    except Exception:  # a model that nobody here can run in FP32 (both runtimes raise anything) proves nothing
        return
    for configuration, options in CONFIGURATIONS.items():
        target = folder / f"{case.category}-{case.name}-{configuration}.onnx"
        try:
            report = converted(case.model, target, trunk=trunk, **options)
            if report.counts.half_tensors and configuration != "forced":
                _compare(case, configuration, trunk, expected, run(emulated(target), feed))
        except Fault as fault:
            yield configuration, fault
        else:
            yield configuration, target


def _compare(case: Case, configuration: str, trunk: str, expected: list[Any], got: list[Any]) -> None:
    if (case.label, configuration, trunk) not in NOT_CLOSE:
        check_close(expected, got, trunk)


def _parser_faults(done: list[Converted]) -> dict[str, str]:
    """Every conversion must be parsed whose upload is."""
    sources = list(dict.fromkeys(one.case.model for one in done))
    refused = refusals([*sources, *(one.path for one in done)])
    return {
        f"{one.case.label} {one.configuration}": f"is refused: {refused[one.path]}"
        for one in done
        if one.path in refused and one.case.model not in refused
    }
