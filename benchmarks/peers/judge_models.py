"""What converters make of real models. Texts are empty where all is well."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.peers.judge_graphs import TOOLCHAIN, Answer, first_line, ignore, interface, validity
from service.errors import AtollError
from worker.engine.builder import engine_from_onnx
from worker.graph.index import GraphIndex, build_index
from worker.graph.load import load
from worker.types import EngineRequest
from worker.verify.compare import compare
from worker.verify.emulate import emulate
from worker.verify.inputs import generate, input_specs
from worker.verify.session import RunFailed, Session
from worker.verify.types import Incomparable, Unverifiable
from worker.verify.watchdog import Watchdog

Sizes = Mapping[str, list[int]]
Values = Mapping[str, int]

CLOSE = 0.9999
"""The cosine from which on a real model's outputs are close to FP32's."""

_JUDGED_SEED, _SAMPLE_SEED = 0, 1
_SECONDS, _MEMORY = 300.0, 16 << 30


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
        result = engine_from_onnx(EngineRequest(Path(model), target, TOOLCHAIN, "portable", (profile,)), ignore)
    except AtollError as error:
        return {"build": first_line(error)}
    finally:
        target.unlink(missing_ok=True)
    warned = any(message.kind == "norm-overflow" for message in result.messages)
    return {"build": "", "fused": result.fused_attentions, "norm_warning": warned}
