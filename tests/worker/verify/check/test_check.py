import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from worker.verify.check import verify
from worker.verify.types import VerifyRequest

Write = Callable[..., Path]

SOURCE = "g (float[n, 4] x) => (float[n, 4] y) { s = Mul(x, x) y = Sqrt(s) }"
HALF = "g (float[n, 4] x) => (float[n, 4] y) {{ h = Cast<to = 10>(x) {body} y = Cast<to = 1>(r) }}"
PROFILES = ({"x": ((1, 4), (32, 4), (64, 4))},)


def test_a_faithful_conversion_passes(write: Write) -> None:
    converted = write(HALF.format(body="s = Mul(h, h) r = Sqrt(s)"), "half.onnx")
    verdict = verify(VerifyRequest(write(SOURCE), converted, PROFILES, target_cosine=0.9999))
    assert (verdict.verdict, verdict.reason) == ("passed", None)
    assert verdict.cosine is not None
    assert 0.9999 < verdict.cosine <= 1
    assert [figures.name for figures in verdict.outputs] == ["y"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("r = Neg(h)", "output 'y' has cosine -?0"),
        ("s = Mul(h, h) q = Sqrt(s) r = Add(q, q)", "output 'y' has relative error 1.0"),
        ("s = Exp(h) q = Exp(s) r = Exp(q)", r"output 'y' has \d+ elements that are finite in only one"),
        ("r = Concat<axis = 0>(h, h)", r"output 'y' has shape \[2, 4\]; FP32 gives \[1, 4\]"),
        ("k = Constant<value_ints = [7]>() r = Reshape(h, k)", "the converted graph does not run where FP32 does"),
    ],
)
def test_what_is_wrong_fails_with_figures(write: Write, body: str, reason: str) -> None:
    verdict = verify(VerifyRequest(write(SOURCE), write(HALF.format(body=body), "half.onnx"), PROFILES))
    assert verdict.verdict == "failed"
    assert re.search(reason, str(verdict.reason))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "g (float[n] x) => (float[n] y) { [dice] r = RandomNormalLike(x) y = Add(x, r) }",
            "random numbers: node 'dice'",
        ),
        (
            """g (float[n] x) => (float[n] y) { k = Constant<value = bool {1}>() p = Constant<value = float {0.5}>()
               [drop] y = Dropout(x, p, k) }""",
            "random numbers: node 'drop'",
        ),
        (
            "g (float[n] x) => (float[] y) { k = Constant<value_ints = [7]>() y = Reshape(x, k) }",
            "does not run on generated",
        ),
        ("g (string[n] x) => (string[n] y) { y = Identity(x) }", "cannot be generated"),
    ],
)
def test_what_cannot_be_judged_is_not_verified(write: Write, text: str, reason: str) -> None:
    path = write(text)
    verdict = verify(VerifyRequest(path, path))
    assert verdict.verdict == "not verified"
    assert reason in str(verdict.reason)
    assert verdict.cosine is None


def test_inactive_dropout_draws_nothing(write: Write) -> None:
    path = write("g (float[n] x) => (float[n] y) { y = Dropout(x) }")
    assert verify(VerifyRequest(path, path)).verdict == "passed"


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"seconds": 0.0}, "did not finish within 0 s"),
        ({"memory_bytes": 1 << 20}, "1 MiB are allowed"),
    ],
)
def test_beyond_the_budget_is_not_verified(write: Write, limit: dict[str, float], reason: str) -> None:
    long = """g (float[n, 4] x) => (float[n, 4] y) {
        times = Constant<value = int64 {2000000}>() go = Constant<value = bool {1}>()
        y = Loop(times, go, x) <body = l (int64 i, bool on, float[n, 4] a) => (bool on2, float[n, 4] b) {
            on2 = Identity(on) b = Sin(a) }> }"""
    path = write(long)
    verdict = verify(replace(VerifyRequest(path, path, PROFILES), **limit))
    assert verdict.verdict == "not verified"
    assert reason in str(verdict.reason)


def test_weights_beyond_the_limit_are_not_verified(tmp_path: Path) -> None:
    graph = onnx.parser.parse_graph("g (float[n, 500] x) => (float[n, 3] y) { y = MatMul(x, w) }")
    graph.initializer.append(onnx.helper.make_tensor("w", 1, [500, 3], bytes(6000), raw=True))
    onnx.save(
        onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 20)]), tmp_path / "m"
    )
    verdict = verify(VerifyRequest(tmp_path / "m", tmp_path / "m", weight_bytes=5999))
    assert (verdict.verdict, verdict.reason) == (
        "not verified",
        "the model has 0 MiB of weights; up to 0 MiB are verified",
    )
