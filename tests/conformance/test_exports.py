"""What PyTorch's exporters write of third-party models: converted, judged, parsed and built."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
import pytest

from tests.conformance.exports import Export, load, names
from worker.engine.run import build_engine, parse_network
from worker.precision.convert import convert
from worker.precision.report import ConversionReport
from worker.types import ConvertRequest, EngineRequest
from worker.verify.check import verify
from worker.verify.types import ShapeTriple, VerifyRequest

TOOLCHAIN = "tensorrt-rtx"
CAPPED = {name for name in names() if name.startswith("gemma2")}
"""TensorRT for RTX has no fused kernel for scores that are capped by tanh."""
EXPORTS = pytest.mark.parametrize("name", names())
TRUNKS = pytest.mark.parametrize("trunk", ["fp16", "bf16"])


@dataclass(frozen=True, slots=True)
class Conversion:
    export: Export
    source: Path
    converted: Path
    report: ConversionReport


ConvertExport = Callable[[str, str], Conversion]


@pytest.fixture(scope="session")
def convert_export(tmp_path_factory: pytest.TempPathFactory) -> ConvertExport:
    """Converts the named fixture in mode `rope` for the given trunk; once for all the tests that look at it."""

    @cache
    def run(name: str, trunk: str) -> Conversion:
        folder = tmp_path_factory.mktemp(f"{name}-{trunk}")
        source, converted = folder / "source.onnx", folder / "converted.onnx"
        export = load(name)
        onnx.save(export.model, source)
        report = convert(ConvertRequest(source=source, target=converted, mode="rope", trunk=trunk))
        return Conversion(export, source, converted, report)

    return run


def profile(conversion: Conversion) -> dict[str, ShapeTriple]:
    return {name: (shape, shape, shape) for name, shape in conversion.export.shapes.items()}


@EXPORTS
@TRUNKS
def test_the_converted_graph_is_valid(convert_export: ConvertExport, name: str, trunk: str) -> None:
    onnx.checker.check_model(convert_export(name, trunk).converted, full_check=True)


@EXPORTS
@TRUNKS
def test_every_attention_is_found_and_bounded(convert_export: ConvertExport, name: str, trunk: str) -> None:
    conversion = convert_export(name, trunk)
    assert len(conversion.report.attentions) == conversion.export.cores
    assert all(attention.bounded for attention in conversion.report.attentions)


@EXPORTS
def test_half_precision_is_close_to_fp32(convert_export: ConvertExport, name: str) -> None:
    conversion = convert_export(name, "fp16")
    verdict = verify(
        VerifyRequest(conversion.source, conversion.converted, profiles=(profile(conversion),), target_cosine=0.9999)
    )
    assert verdict.verdict == "passed", verdict.reason


@EXPORTS
@TRUNKS
def test_tensorrt_parses_the_converted_graph(convert_export: ConvertExport, name: str, trunk: str) -> None:
    facts = parse_network(convert_export(name, trunk).converted, TOOLCHAIN, timeout=60)
    dtype = {"fp16": "half", "bf16": "bf16"}[trunk]
    assert facts.tensor_dtypes[dtype] > 0


@pytest.mark.slow
@EXPORTS
def test_every_attention_fuses_and_no_norm_overflows(convert_export: ConvertExport, name: str) -> None:
    conversion = convert_export(name, "fp16")
    engine = build_engine(
        EngineRequest(
            conversion.converted,
            conversion.converted.with_suffix(".engine"),
            TOOLCHAIN,
            "sm_89",
            profiles=(profile(conversion),),
        ),
        timeout=120,
    )
    assert engine.fused_attentions == (0 if name in CAPPED else conversion.export.cores)
    assert [message.text for message in engine.messages if message.kind == "norm-overflow"] == []
