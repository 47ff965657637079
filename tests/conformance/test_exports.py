"""What PyTorch's exporters write of third-party models: converted, judged, parsed and built."""

import onnx
import pytest

from tests.conformance.conftest import Conversion, ConvertExport
from tests.conformance.exports import names
from worker.engine.run import build_engine, parse_network
from worker.types import EngineRequest
from worker.verify.check import verify
from worker.verify.types import ShapeTriple, VerifyRequest

TOOLCHAIN = "tensorrt-rtx"
EXPORTS = pytest.mark.parametrize("name", names())
TRUNKS = pytest.mark.parametrize("trunk", ["fp16", "bf16"])


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
    assert engine.fused_attentions == conversion.export.cores
    assert [message.text for message in engine.messages if message.kind == "norm-overflow"] == []
