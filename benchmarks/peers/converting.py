"""One converter in a process of its environment: `NAME [SCRIPT]`, then jobs `{source, target}` on stdin.

What a converter needs is imported before the first job, so that a job's time is the conversion's alone.
"""

import importlib
import runpy
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.peers.batch import serve

Convert = Callable[[str, str], None]


def onnxconverter_common() -> Convert:
    return partial(_float16, importlib.import_module("onnxconverter_common.float16").convert_float_to_float16)


def onnxruntime() -> Convert:
    return partial(_float16, importlib.import_module("onnxruntime.transformers.float16").convert_float_to_float16)


def autocast() -> Convert:
    onnx = importlib.import_module("onnx")
    converter = importlib.import_module("modelopt.onnx.autocast").convert_to_mixed_precision

    def convert(source: str, target: str) -> None:
        # Its default list of providers is one object for all calls, and calls add to it.
        onnx.save(converter(source, low_precision_type="fp16", keep_io_types=True, providers=["cpu"]), target)

    return convert


def reference(script: str) -> Convert:
    converter = runpy.run_path(script)["convert_to_fp16"]

    def convert(source: str, target: str) -> None:
        try:
            converter(source, target, mode="rope", bound_attn=True)
        except RuntimeError:  # it has found no attention: its own advice is to do without
            converter(source, target, mode="rope", bound_attn=False)

    return convert


def atoll() -> Convert:
    child = importlib.import_module("benchmarks.convert_child")
    importlib.import_module("worker.precision.convert")
    return lambda source, target: child.ours(source, target, "rope")


def _float16(converter: Callable[..., object], source: str, target: str) -> None:
    """Both converters of this name take a model and give one."""
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
