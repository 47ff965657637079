from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.worker.precision.planned import parse, with_weights
from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit
from worker.graph.index import build_index
from worker.graph.load import load
from worker.precision.convert import convert, plan_model
from worker.types import ConvertRequest
from worker.verify.inputs import generate, input_specs
from worker.verify.search.emulation import emulate_plan
from worker.verify.session import Session
from worker.verify.watchdog import Watchdog

Emulated = Callable[[Path, Mapping[str, Any]], dict[str, np.ndarray]]

TINY = AudioDiTConfig(layers=1, dim=64, heads=1, latent_channels=8, cond_tokens=6, cond_dim=16)
ATTENTION = """
    q = MatMul(x, wq) k = MatMul(x, wk) kt = Transpose<perm = [0, 2, 1]>(k)
    s = MatMul(q, kt) {mask} p = Softmax<axis = -1>(t) o = MatMul(p, x) y = MatMul(o, w)
"""
GRAPHS = {
    "a norm between projections": """g (float[1,8,64] x) => (float[] y)
        <float two = {2}, float eps = {1e-6}, int64[1] last = {-1}> {
        h = MatMul(x, w) s = Pow(h, two) m = ReduceMean(s, last) e = Add(m, eps) r = Sqrt(e) n = Div(h, r)
        y = MatMul(n, w) }""",
    "a huge mask constant": f"""g (float[1,8,64] x, bool[1,8,8] keep) => (float[] y)
        <float zero = {{0}}, float low = {{-3e38}}> {{
        {ATTENTION.replace("{mask}", "m = Where(keep, zero, low) t = Add(s, m)")} }}""",
    "a mask of callers": f"""g (float[1,8,64] x, float[1,8,8] mask) => (float[] y) {{
        {ATTENTION.replace("{mask}", "t = Add(s, mask)")} }}""",
    "a bound of a clip": """g (float[1,8,64] x) => (float[] y) <float low = {-1e9}, float high = {1e9}> {
        h = MatMul(x, w) c = Clip(h, low, high) y = MatMul(c, w) }""",
    "branches": """g (float[1,8,64] x, bool b) => (float[] y) {
        h = MatMul(x, w)
        c = If (b) <then_branch = t () => (float[] u) { u = MatMul(h, wq) }, else_branch = e () => (float[] v) {
            k = Mul(h, h) v = MatMul(k, wk) }>
        y = MatMul(c, w) }""",
    "a part that is half already": """g (float[1,8,64] x) => (float[] y) {
        h = MatMul(x, w) a = Cast<to = 10>(h) b = Mul(a, a) c = Cast<to = 1>(b) y = MatMul(c, w) }""",
    "an output inside": """g (float[1,8,64] x) => (float[] y, float[] h) { h = MatMul(x, w) y = MatMul(h, w) }""",
}


def outputs_of_plan(source: Path, feed: Mapping[str, Any], **options: Any) -> dict[str, np.ndarray]:
    planned = plan_model(ConvertRequest(source, source, **options))
    skeleton = emulate_plan(planned.graph, planned.plan)
    return Session(skeleton, source.parent, "plan").run(feed, Watchdog(60, 8 << 30))


def check_equal(source: Path, run_emulated: Emulated, **options: Any) -> None:
    feed = generate(input_specs(build_index(load(source))), {}, 0)
    target = source.with_name("converted.onnx")
    convert(ConvertRequest(source, target, **options))
    expected = run_emulated(target, feed)
    for name, values in outputs_of_plan(source, feed, **options).items():
        assert np.array_equal(values, expected[name], equal_nan=True), name


@pytest.mark.parametrize("mode", ["rope", "minimal"])
@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo", "opset23"])
def test_a_plan_computes_what_the_converted_graph_does(
    exporter: Exporter, trunk: str, mode: str, tmp_path: Path, run_emulated: Emulated
) -> None:
    source = tmp_path / "dit.onnx"
    write_audio_dit(source, replace(TINY, exporter=exporter))
    check_equal(source, run_emulated, trunk=trunk, mode=mode)


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("name", GRAPHS)
def test_what_a_plan_asks_for_is_emulated(name: str, trunk: str, tmp_path: Path, run_emulated: Emulated) -> None:
    source = tmp_path / "model.onnx"
    model = parse(GRAPHS[name], opset=20, ir_version=9)
    onnx.save(with_weights(model, dict.fromkeys(("w", "wq", "wk"), (64, 64))), source)
    check_equal(source, run_emulated, trunk=trunk)
