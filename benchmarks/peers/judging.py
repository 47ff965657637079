"""Judges in a process of their own, as bad graphs crash runtimes and parsers: `NAME`, then jobs on stdin.

Every answer's texts are empty where all is well, else they say what is wrong.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, TensorProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator

from benchmarks.peers.batch import serve
from benchmarks.peers.operators import load_test, takes_floats
from service.errors import AtollError, InvalidGraph
from worker.engine.builder import engine_from_onnx, network_from_onnx
from worker.engine.toolchains import toolchain_named
from worker.graph import walk
from worker.graph.index import GraphIndex, build_index
from worker.graph.load import load
from worker.graph.order import sort_nodes
from worker.graph.save import Output, save
from worker.types import EngineRequest
from worker.verify.compare import compare
from worker.verify.emulate import emulate
from worker.verify.inputs import generate, input_specs
from worker.verify.session import RunFailed, Session
from worker.verify.types import Incomparable, Unverifiable
from worker.verify.watchdog import Watchdog

Answer = dict[str, Any]
Sizes = Mapping[str, list[int]]
Values = Mapping[str, int]

CLOSE = 0.9999
"""The cosine from which on a real model's outputs are close to FP32's."""

TOLERANCE = 0.02
"""The largest error that an operator test may have, as a part of the largest value that FP32 gives."""

_SMALLEST_SCALE = 1e-3
_TOOLCHAIN = "tensorrt-rtx"
_FATAL = 4
_JUDGED_SEED, _SAMPLE_SEED = 0, 1
_SECONDS, _MEMORY = 300.0, 16 << 30


# --- operator tests --------------------------------------------------------------------------------------------------


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


# --- any model -------------------------------------------------------------------------------------------------------


def validity(target: Path, converted: ModelProto, judged: bool) -> Answer:
    """The checker's words on a result, and on the same with its nodes in order, as some runtimes put them.

    Nothing is held against a result whose source does not pass either (`judged` false).
    """
    fault = checked(target) if judged else ""
    return {"checker": fault, "reordered": fault and _checked_in_order(target, converted)}


def _checked_in_order(target: Path, converted: ModelProto) -> str:
    try:
        for graph in walk.graphs(converted.graph):
            sort_nodes(graph)
    except InvalidGraph as cycle:
        return first_line(cycle)
    path = target.with_suffix(".ordered")
    onnx.save(converted, path)
    return checked(path)


def checked(path: Path) -> str:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # the checker's and shape inference's errors share no base
        return first_line(error)
    return ""


def interface(source: ModelProto, converted: ModelProto) -> str:
    """Names and types of public inputs and outputs, in order; symbols of dims may be renamed."""
    before, after = (_signatures(model) for model in (source, converted))
    return "" if before == after else f"was {_changed(before, after)}, is {_changed(after, before)}"


def _signatures(model: ModelProto) -> list[str]:
    """An input with an initializer is a weight: old files have to list them all."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    return [f"{value.name}: {_type(value)}" for value in (*inputs, *model.graph.output)]


def _type(value: ValueInfoProto) -> str:
    text = value.type.WhichOneof("value")
    inner = value.type
    while inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        inner = getattr(inner, inner.WhichOneof("value")).elem_type
    return f"{text} {TensorProto.DataType.Name(inner.tensor_type.elem_type)}"


def _changed(one: list[str], other: list[str]) -> str:
    return ", ".join(text for text in one if text not in other) or "in another order"


def has_half(model: ModelProto) -> bool:
    """Whether anything in the graph is FP16."""
    half = TensorProto.FLOAT16
    for graph in walk.graphs(model.graph):
        if any(tensor.data_type == half for tensor in graph.initializer):
            return True
        for node in graph.node:
            if any(_names_half(attribute, half) for attribute in node.attribute):
                return True
    return False


def _names_half(attribute: onnx.AttributeProto, half: int) -> bool:
    if attribute.name in ("to", "dtype"):
        return bool(attribute.i == half)
    return attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == half


def parse(model: str) -> Answer:
    """What TensorRT for RTX says of a graph, strongly typed."""
    try:
        network_from_onnx(Path(model), toolchain_named(_TOOLCHAIN), _ignore)
    except AtollError as error:
        return {"parse": first_line(error)}
    return {"parse": ""}


# --- real models -----------------------------------------------------------------------------------------------------


def sample(model: str, inputs: str, shapes: Sizes, values: Values) -> Answer:
    """Writes `inputs`, an .npz file with inputs of the kind that a real model is judged on; others than those."""
    np.savez(inputs, **_feed(build_index(load(Path(model))), shapes, values, _SAMPLE_SEED))
    return {}


def real(source: str, target: str, shapes: Sizes, values: Values) -> Answer:
    """Validity and closeness of a converted real model."""
    converted = onnx.load(target)
    faults = {**validity(Path(target), converted, True), "interface": interface(onnx.load(source), converted)}
    try:
        cosine, why = _closeness(Path(source), Path(target), shapes, values)
    except (Unverifiable, Incomparable, RunFailed, AtollError) as error:
        cosine, why = None, first_line(error)
    return {**faults, "cosine": cosine, "close": why}


def _closeness(source: Path, target: Path, shapes: Sizes, values: Values) -> tuple[float, str]:
    original, converted = load(source), load(target)
    feed = _feed(build_index(original), shapes, values, _JUDGED_SEED)
    expected = Session(original, source.parent, "model").run(feed, Watchdog(_SECONDS, _MEMORY))
    emulate(converted)
    got = Session(converted, target.parent, "converted graph").run(feed, Watchdog(_SECONDS, _MEMORY))
    figures = [compare(name, expected[name], got[name]) for name in expected]
    cosine, lost = min(figure.cosine for figure in figures), sum(figure.nonfinite for figure in figures)
    if lost:
        return cosine, f"{lost} elements are not finite"
    return cosine, "" if cosine >= CLOSE else f"cosine {cosine:.6f}"


def _feed(index: GraphIndex, shapes: Sizes, values: Values, seed: int) -> dict[str, Any]:
    feed = generate(input_specs(index), {name: tuple(shape) for name, shape in shapes.items()}, seed)
    return feed | {name: np.asarray(value, feed[name].dtype) for name, value in values.items()}


def build(model: str, shapes: Sizes) -> Answer:
    """A portable engine: what it fused, and whether the builder warned of norms in FP16."""
    target = Path(model).with_suffix(".engine")
    profile = {name: (tuple(shape),) * 3 for name, shape in shapes.items()}
    try:
        result = engine_from_onnx(EngineRequest(Path(model), target, _TOOLCHAIN, "portable", (profile,)), _ignore)
    except AtollError as error:
        return {"build": first_line(error)}
    finally:
        target.unlink(missing_ok=True)
    warned = any(message.kind == "norm-overflow" for message in result.messages)
    return {"build": "", "fused": result.fused_attentions, "norm_warning": warned}


def _ignore(_event: Mapping[str, Any]) -> None:
    """The builder's progress; nobody watches."""


def first_line(error: BaseException) -> str:
    text = error.detail if isinstance(error, AtollError) else str(error)
    return " ".join(text.split())[:200] or type(error).__name__


JUDGES: dict[str, Callable[..., Answer]] = {
    "survey": survey,
    "operator": operator,
    "parse": parse,
    "sample": sample,
    "real": real,
    "build": build,
}

if __name__ == "__main__":
    serve(JUDGES[sys.argv[1]])
