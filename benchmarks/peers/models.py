"""The real models: what PyPI wheels ship, and generated audio transformers as three exporters spell them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from benchmarks.peers.wheels import unpacked
from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit

Shapes = Mapping[str, tuple[int, ...]]

_LENGTH = 256
_CORES_A_LAYER = 2
_SILERO, _RAPIDOCR, _MAGIKA = "silero-vad==6.2.3", "rapidocr-onnxruntime==1.4.4", "magika==1.0.3"


@dataclass(frozen=True, slots=True)
class RealModel:
    """A file, the shapes and values that it is run with, and how many attention cores its graph has."""

    name: str
    path: Path
    shapes: Shapes
    values: Mapping[str, int] = field(default_factory=dict)
    cores: int = 0


@dataclass(frozen=True, slots=True)
class _Shipped:
    wheel: str
    file: str
    shapes: Shapes
    values: Mapping[str, int] = field(default_factory=dict)
    cores: int = 0


_VOICE = {"input": (1, 576), "state": (2, 1, 128)}
_RATE = {"sr": 16000}
_SHIPPED = (
    _Shipped(_SILERO, "silero_vad/data/silero_vad.onnx", _VOICE, _RATE),
    _Shipped(_SILERO, "silero_vad/data/silero_vad_16k_op15.onnx", _VOICE, _RATE),
    _Shipped(
        _SILERO,
        "silero_vad/data/silero_vad_16k_sequence.onnx",
        {"input": (8, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
    ),
    _Shipped(_SILERO, "silero_vad/data/silero_vad_half.onnx", _VOICE),
    _Shipped(_SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx", _VOICE, _RATE),
    _Shipped(_SILERO, "silero_vad/data/silero_vad_openvino_16k.onnx", _VOICE),
    _Shipped(_RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}),
    _Shipped(_RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}, cores=2),
    # Square, as this file calls both height and width `?`, and TensorRT takes one name for one size.
    _Shipped(_RAPIDOCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 48)}),
    _Shipped(_MAGIKA, "magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
)


def shipped_models(cache: Path) -> Iterator[RealModel]:
    """Raises WheelMissing."""
    for shipped in _SHIPPED:
        path = unpacked(shipped.wheel, cache) / shipped.file
        name = f"{shipped.wheel.partition('==')[0]}: {path.stem}"
        yield RealModel(name, path, shipped.shapes, shipped.values, shipped.cores)


def generated_models(cache: Path) -> Iterator[RealModel]:
    """Audio transformers of our own generator, with one softmax in an attention and with two."""
    folder = cache / "dits"
    folder.mkdir(parents=True, exist_ok=True)
    for exporter in get_args(Exporter):
        for differential in (False, True):
            config = AudioDiTConfig(exporter=exporter, differential=differential)
            name = f"audio_dit_{exporter}{'_differential' if differential else ''}"
            path = folder / f"{name}.onnx"
            write_audio_dit(path, config)
            yield RealModel(name, path, _dit_shapes(config), cores=_cores(config))


def _cores(config: AudioDiTConfig) -> int:
    return config.layers * _CORES_A_LAYER * (2 if config.differential else 1)


def _dit_shapes(config: AudioDiTConfig) -> Shapes:
    return {"x": (1, config.latent_channels, _LENGTH), "local_add_cond": (1, config.latent_channels + 1, _LENGTH)}
