"""What converters make of operator tests. Texts are empty where all is well."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from benchmarks.peers.judge_graphs import Answer, checked, first_line, has_half, interface, validity
from benchmarks.peers.operators import load_test, takes_floats
from worker.graph.load import load
from worker.graph.save import Output, save
from worker.verify.emulate import emulate

TOLERANCE = 0.02
"""The largest error that an operator test may have, as a part of the largest value that FP32 gives."""

_SMALLEST_SCALE = 1e-3
_FATAL = 4


def survey(folder: str, inputs: str) -> Answer:
    """Whether a test takes part: FP32 inputs, runs, gives the same twice; and whether the checker takes its model.

    Writes `inputs`, an .npz file with the test's inputs, where these are tensors.
    """
    path, model, feeds = load_test(Path(folder))
    if not takes_floats(model):
        return {"takes_part": False}
    if all(isinstance(value, np.ndarray) for value in feeds.values()):
        np.savez(inputs, **feeds)
    first, second = run(model, feeds), run(model, feeds)
    return {"takes_part": not difference(first, second, 0.0), "valid": not checked(path)}


def operator(folder: str, target: str, valid: bool) -> Answer:
    """What a converter made of a test. `valid`: its model passes the checker as it is."""
    _, model, feeds = load_test(Path(folder))
    converted = onnx.load(target)
    return {
        **validity(Path(target), converted, valid),
        "interface": interface(model, converted),
        "right": accuracy(run(model, feeds), Path(target), converted, feeds),
        "half": has_half(converted),
    }


def accuracy(expected: list[Any], target: Path, converted: ModelProto, feeds: Mapping[str, Any]) -> str:
    """Emulated, or as the converted graph runs where the emulation does not take it."""
    try:
        got = run(emulated(target), feeds)
    except Exception as refusal:  # runtimes raise anything on a graph that is not right
        try:
            got = run(converted, feeds)
        except Exception:
            return f"does not run: {first_line(refusal)}"
    return difference(expected, got, TOLERANCE)


def emulated(path: Path) -> ModelProto:
    skeleton = load(path)
    emulate(skeleton)
    target = path.with_suffix(".emulated")
    save(Output(skeleton), target)
    return onnx.load(target)


def run(model: ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """By ONNX Runtime as written, or by the reference evaluator for what that has no kernel for."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(feeds)))
    except Exception:  # ONNX Runtime's errors share no public base
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def difference(expected: list[Any], got: list[Any], tolerance: float) -> str:
    before, after = flat(expected), flat(got)
    if len(before) != len(after):
        return f"{len(after)} values for {len(before)}"
    return next((fault for old, new in zip(before, after, strict=True) if (fault := _fault(old, new, tolerance))), "")


def flat(value: Any) -> list[np.ndarray]:
    """Arrays out of sequences and optionals."""
    if value is None:
        return []
    if isinstance(value, list):
        return [array for item in value for array in flat(item)]
    return [np.asarray(value)]


def _fault(old: np.ndarray, new: np.ndarray, tolerance: float) -> str:
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return f"{new.dtype}{list(new.shape)} for {old.dtype}{list(old.shape)}"
    if old.dtype.kind != "f":
        return "" if np.array_equal(old, new) else f"{old.dtype} values differ"
    wide, finite = (old.astype(np.float64), new.astype(np.float64)), np.isfinite(old)
    if not np.array_equal(finite, np.isfinite(new)) or not np.array_equal(old[~finite], new[~finite], equal_nan=True):
        return "not finite where FP32 is, or the reverse"
    scale = np.abs(wide[0][finite]).max(initial=0.0)
    error = np.abs(wide[0][finite] - wide[1][finite]).max(initial=0.0)
    return "" if error <= tolerance * max(scale, _SMALLEST_SCALE) else f"error {error:.3g} at scale {scale:.3g}"
