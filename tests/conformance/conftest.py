"""Each fixture is converted once for all the tests that look at it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
import pytest

from tests.conformance.exports import Export, load
from worker.precision.convert import convert
from worker.precision.report import ConversionReport
from worker.types import ConvertRequest


@dataclass(frozen=True, slots=True)
class Conversion:
    export: Export
    source: Path
    converted: Path
    report: ConversionReport


ConvertExport = Callable[[str, str], Conversion]


@pytest.fixture(scope="session")
def convert_export(tmp_path_factory: pytest.TempPathFactory) -> ConvertExport:
    """Converts the named fixture in mode `rope` for the given trunk."""

    @cache
    def run(name: str, trunk: str) -> Conversion:
        folder = tmp_path_factory.mktemp(f"{name}-{trunk}")
        source, converted = folder / "source.onnx", folder / "converted.onnx"
        export = load(name)
        onnx.save(export.model, source)
        report = convert(ConvertRequest(source=source, target=converted, mode="rope", trunk=trunk))
        return Conversion(export, source, converted, report)

    return run
