"""Real models that PyPI packages ship: silero-vad, rapidocr-onnxruntime, magika."""

import os
from functools import cache
from pathlib import Path

import onnx
import pytest

from benchmarks.peers.models import RealModel, shipped_models
from worker.conversion import convert
from worker.types import ConvertRequest
from worker.verify.check import verify
from worker.verify.types import VerifyRequest

FILES = (
    "silero-vad: silero_vad",
    "silero-vad: silero_vad_16k_op15",
    "silero-vad: silero_vad_16k_sequence",
    "silero-vad: silero_vad_half",
    "silero-vad: silero_vad_op18_ifless",
    "silero-vad: silero_vad_openvino_16k",
    "rapidocr-onnxruntime: ch_PP-OCRv4_det_infer",
    "rapidocr-onnxruntime: ch_PP-OCRv4_rec_infer",
    "rapidocr-onnxruntime: ch_ppocr_mobile_v2.0_cls_infer",
    "magika: model",
)
TARGET = {"fp16": 0.9999, "bf16": 0.99}
SILENT = "rapidocr-onnxruntime: ch_PP-OCRv4_det_infer"
"""It finds no text in generated images: its probabilities are below what half resolves, and prove nothing."""


@cache
def models() -> dict[str, RealModel]:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "atoll-tests"
    return {model.name: model for model in shipped_models(root)}


def test_every_file_of_the_packages_is_tested() -> None:
    assert set(models()) == set(FILES)


@pytest.mark.slow
@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("name", FILES)
def test_a_shipped_model_converts_and_stays_close(tmp_path: Path, name: str, trunk: str) -> None:
    model, target = models()[name], tmp_path / "converted.onnx"
    report = convert(ConvertRequest(model.path, target, trunk=trunk))
    onnx.checker.check_model(target, full_check=True)
    assert _public(target) == _public(model.path)
    assert sum(core.bounded for core in report.attentions) == model.cores
    kept = any(finding.kind == "opset kept" for finding in report.findings)
    assert report.counts.half_tensors > 0 or (trunk == "bf16" and kept)
    profile = {each: (shape, shape, shape) for each, shape in model.shapes.items()}
    request = VerifyRequest(model.path, target, (profile,), target_cosine=TARGET[trunk], pessimistic=False)
    assert verify(request).verdict == ("not verified" if name == SILENT else "passed")


def _public(path: Path) -> list[tuple[str, int]]:
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    values = [value for value in (*graph.input, *graph.output) if value.name not in weights]
    return [(value.name, value.type.tensor_type.elem_type) for value in values]
