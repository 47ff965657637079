"""What ONNX Runtime's half kernels hide on a CPU: the verdict fails and names the node, and the default mode passes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from worker.conversion import convert
from worker.types import ConvertRequest
from worker.verify.check import verify
from worker.verify.types import Verdict, VerifyRequest

Write = Callable[..., Path]

RMS_NORM = """g (float[1, n, 16] x) => (float[1, n, 16] y) {
    k = Constant<value = float {400.0}>() two = Constant<value = float {2.0}>() axis = Constant<value_ints = [-1]>()
    eps = Constant<value = float {0.00001}>()
    [up] h = Mul(x, k) [square] s = Pow(h, two) [mean] m = ReduceMean(s, axis) [shift] e = Add(m, eps)
    [root] r = Sqrt(e) [norm] y = Div(h, r) }"""
ROTARY = """g (float[1, n, 64] q) => (float[1, n, 64] y) {
    one = Constant<value_ints = [1]>() step = Constant<value = int64 {1}>() first = Constant<value = int64 {0}>()
    shape = Shape(q) length = Gather(shape, step) p = Range(first, length, step) f = Cast<to = 1>(p)
    [column] u = Unsqueeze(f, one) [angle] a = Mul(u, inv) b = Concat<axis = -1>(a, a) [cos] c = Cos(b) [sin] s = Sin(b)
    l, r = Split<axis = -1, num_outputs = 2>(q) n1 = Neg(r) o = Concat<axis = -1>(n1, l)
    [turn] t = Mul(q, c) [cross] v = Mul(o, s) [rotated] y = Add(t, v) }"""


def convert_and_verify(source: Path, profile: tuple[int, ...] = (), **options: object) -> Verdict:
    target = source.with_name("converted.onnx")
    convert(ConvertRequest(source, target, **options))  # type: ignore[arg-type]
    profiles = ({"q": (profile, profile, profile)},) if profile else ()
    return verify(VerifyRequest(source, target, profiles))


def with_frequencies(path: Path) -> Path:
    model = onnx.load(path)
    frequencies = (1e4 ** (-np.arange(32) / 32)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(frequencies, "inv"))
    onnx.save(model, path)
    return path


def test_large_activations_before_a_norm_fail_by_name_though_onnx_runtime_says_fine(write: Write) -> None:
    source = write(RMS_NORM)
    verdict = convert_and_verify(source, mode="minimal", keep_trunk=("*",))
    assert verdict.verdict == "failed"
    assert verdict.culprit is not None
    assert (verdict.culprit.node, verdict.culprit.drift) == ("square", None)
    assert "'square' (Pow)" in str(verdict.reason)
    x = np.random.default_rng(0).standard_normal((1, 16, 16)).astype(np.float32)
    naive, exact = (
        ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for path in (source.with_name("converted.onnx"), source)
    )
    assert np.isfinite(naive).all()
    assert np.abs(naive - exact).max() < 0.02


@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
def test_the_same_model_passes_with_its_norm_in_an_island(write: Write, mode: str) -> None:
    verdict = convert_and_verify(write(RMS_NORM), mode=mode)
    assert (verdict.verdict, verdict.culprit, verdict.findings) == ("passed", None, ())


@pytest.mark.parametrize(("mode", "expected"), [("minimal", "failed"), ("rope", "passed")])
def test_a_rotary_angle_in_bf16_is_noise_at_length_4092(write: Write, mode: str, expected: str) -> None:
    source = with_frequencies(write(ROTARY))
    verdict = convert_and_verify(source, (1, 4092, 64), mode=mode, trunk="bf16")
    assert verdict.verdict == expected
    assert (verdict.culprit.node if verdict.culprit else None) == ("cos" if expected == "failed" else None)
