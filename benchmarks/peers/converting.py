"""One converter in a process of its environment: `NAME [SCRIPT]`, then jobs `{source, target, inputs}` on stdin.

`inputs` is a folder with an .npz file of typical inputs, or None; AutoCast alone can use it. What a converter needs is
imported before the first job, so that a job's time is the conversion's alone.
"""

import importlib
import runpy
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.peers.batch import serve

Convert = Callable[[str, str, str | None], None]


def onnxconverter_common() -> Convert:
    return partial(_float16, importlib.import_module("onnxconverter_common.float16").convert_float_to_float16)


def onnxruntime() -> Convert:
    return partial(_float16, importlib.import_module("onnxruntime.transformers.float16").convert_float_to_float16)


def autocast() -> Convert:
    onnx = importlib.import_module("onnx")
    converter = importlib.import_module("modelopt.onnx.autocast").convert_to_mixed_precision

    def calibrated(source: str, inputs: str | None) -> object:
        # Its default list of providers is one object for all calls, and calls add to it.
        options = {"keep_io_types": True, "calibration_data": inputs, "providers": ["cpu"]}
        return converter(source, low_precision_type="fp16", **options)

    def convert(source: str, target: str, inputs: str | None) -> None:
        try:
            onnx.save(calibrated(source, inputs), target)
        except Exception as fault:  # it raises what ONNX Runtime raises; random inputs of its own are its other way
            if inputs is None:
                raise
            try:
                onnx.save(calibrated(source, None), target)
            except Exception:
                raise fault from None

    return convert


def reference(script: str) -> Convert:
    converter = runpy.run_path(script)["convert_to_fp16"]

    def convert(source: str, target: str, inputs: str | None) -> None:  # noqa: ARG001 -- it takes none
        try:
            converter(source, target, mode="rope", bound_attn=True)
        except RuntimeError:  # it has found no attention: its own advice is to do without
            converter(source, target, mode="rope", bound_attn=False)

    return convert


def atoll() -> Convert:
    child = importlib.import_module("benchmarks.convert_child")
    importlib.import_module("worker.precision.convert")

    def convert(source: str, target: str, inputs: str | None) -> None:  # noqa: ARG001 -- it takes none
        child.ours(source, target, "rope")

    return convert


def _float16(converter: Callable[..., object], source: str, target: str, inputs: str | None) -> None:  # noqa: ARG001
    """Both converters of this name take a model, and no inputs, and give a model."""
    onnx = importlib.import_module("onnx")
    onnx.save(converter(onnx.load(source), keep_io_types=True), target)


CONVERTERS: dict[str, Callable[..., Convert]] = {
    "reference": reference,
    "onnxconverter-common": onnxconverter_common,
    "onnxruntime": onnxruntime,
    "autocast": autocast,
    "atoll": atoll,
}

if __name__ == "__main__":
    serve(CONVERTERS[sys.argv[1]](*sys.argv[2:]))
