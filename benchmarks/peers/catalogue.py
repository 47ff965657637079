"""The converters that are put side by side: where each comes from, and how it is called."""

from dataclasses import dataclass

OURS = "atoll"


@dataclass(frozen=True, slots=True)
class Peer:
    """`requirements` are installed in an environment of the peer's own; none: it runs in ours.

    `packages`: those whose versions matter. `call`: how it is called, as the page tells it.
    """

    name: str
    call: str
    packages: tuple[str, ...]
    requirements: tuple[str, ...] = ()


PEERS = (
    Peer(
        "reference",
        "the one-model script: `convert_to_fp16(source, target, mode='rope', bound_attn=True)`, and once more with "
        "`bound_attn=False` where it ends because it finds no attention",
        ("onnx", "numpy"),
    ),
    Peer(
        "onnxconverter-common",
        "`float16.convert_float_to_float16(model, keep_io_types=True)`",
        ("onnxconverter-common", "onnx"),
        ("onnxconverter-common",),
    ),
    Peer(
        "onnxruntime",
        "`onnxruntime.transformers.float16.convert_float_to_float16(model, keep_io_types=True)`",
        ("onnxruntime", "onnx"),
        ("onnxruntime", "onnx"),
    ),
    Peer(
        "autocast",
        "`modelopt.onnx.autocast.convert_to_mixed_precision(path, low_precision_type='fp16', keep_io_types=True, "
        "calibration_data=inputs)`; the inputs are the operator test's own, or typical ones of the real model, "
        "and where that fails its own random ones",
        ("nvidia-modelopt", "onnx", "onnxruntime-gpu"),
        # Newer torch builds bring gigabytes of CUDA libraries, of which a conversion uses nothing.
        ("torch==2.13.0", "nvidia-modelopt[onnx]"),
    ),
    Peer(OURS, "`convert(ConvertRequest(source, target, mode='rope'))`, the defaults", ("atoll", "onnx")),
)
