"""A verdict that depends on how a GPU adds up is a finding, which names the node."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from worker.verify.check import verify
from worker.verify.types import Verdict, VerifyRequest

Write = Callable[..., Path]

MEAN = """g (bool[1, n] mask) => (float[1] y) {{ one = Cast<to = {dtype}>(mask) axis = Constant<value_ints = [-1]>()
    [mean] m = ReduceMean<keepdims = 0>(one, axis) y = Cast<to = 1>(m) }}"""
CORE = """g (float[1, 2] q, float[n, 2] k, float[n, 2] v) => (float[1, 2] y) {{
    qh = Cast<to = {dtype}>(q) kh = Cast<to = {dtype}>(k) vh = Cast<to = {dtype}>(v) zero = Sub(qh, qh)
    kt = Transpose(kh) s = MatMul(zero, kt) [softmax] p = Softmax<axis = -1>(s) [mix] o = MatMul(p, vh)
    y = Cast<to = 1>(o) }}"""


def judged(write: Write, text: str, **profile: tuple[int, ...]) -> Verdict:
    source, half = write(text.format(dtype=1)), write(text.format(dtype=10), "half.onnx")
    shapes = {name: (shape, shape, shape) for name, shape in profile.items()}
    return verify(VerifyRequest(source, half, (shapes,), target_cosine=0.99, pessimistic=True))


def test_a_mean_over_262144_ones_may_overflow(write: Write) -> None:
    verdict = judged(write, MEAN, mask=(1, 262_144))
    assert (verdict.verdict, verdict.pessimistic) == ("passed", "failed")
    assert [(finding.kind, finding.where) for finding in verdict.findings] == [("accumulation", "mean")]


@pytest.mark.parametrize(("keys", "pessimistic", "where"), [(4_096, "passed", []), (66_000, "failed", ["softmax"])])
def test_attention_over_more_keys_than_fp16_counts_is_caught(
    write: Write, keys: int, pessimistic: str, where: list[str]
) -> None:
    verdict = judged(write, CORE, k=(keys, 2), v=(keys, 2))
    assert (verdict.verdict, verdict.pessimistic) == ("passed", pessimistic)
    assert [finding.where for finding in verdict.findings] == where


def test_attention_as_one_operator_is_seen_through(tmp_path: Path) -> None:
    paths = [tmp_path / "full.onnx", tmp_path / "half.onnx"]
    for path, dtype in zip(paths, (1, 10), strict=True):
        text = """<ir_version: 10, opset_import: ["": 23]>
            g (float[1, 1, 1, 2] q, float[1, 1, n, 2] k, float[1, 1, n, 2] v) => (float[1, 1, 1, 2] y) {
            qh = Cast<to = DTYPE>(q) kh = Cast<to = DTYPE>(k) vh = Cast<to = DTYPE>(v) zero = Sub(qh, qh)
            [core] o = Attention(zero, kh, vh) y = Cast<to = 1>(o) }"""
        onnx.save(onnx.parser.parse_model(text.replace("DTYPE", str(dtype))), path)
    keys = dict.fromkeys(("k", "v"), ((1, 1, 66000, 2),) * 3)
    verdict = verify(VerifyRequest(*paths, (keys,), target_cosine=0.99, pessimistic=True))
    assert (verdict.verdict, verdict.pessimistic) == ("passed", "failed")
    assert [(finding.kind, finding.where) for finding in verdict.findings] == [("accumulation", "core")]


def test_operators_that_are_not_dealt_out_are_told_once(write: Write) -> None:
    text = """g (float[n, 4] x) => (float[n, n] y) {{ h = Cast<to = {dtype}>(x)
        [one] a = Einsum<equation = "ij,kj->ik">(h, h) [two] b = Einsum<equation = "ij,jk->ik">(a, a)
        y = Cast<to = 1>(b) }}"""
    verdict = judged(write, text, x=(4, 4))
    [finding] = verdict.findings
    assert (finding.kind, finding.where, finding.detail[:14]) == ("accumulation-in-fp32", "one", "2 Einsum nodes")


def test_weights_in_files_are_dealt_out(tmp_path: Path) -> None:
    paths = [tmp_path / "full.onnx", tmp_path / "half.onnx"]
    for path, dtype in zip(paths, (TensorProto.FLOAT, TensorProto.FLOAT16), strict=True):
        body = f"h = Cast<to = {dtype}>(x) [product] m = MatMul(h, w) y = Cast<to = 1>(m)"
        graph = onnx.parser.parse_graph(f"g (float[n, 600] x) => (float[n, 2] y) {{ {body} }}")
        graph.initializer.append(helper.make_tensor("w", dtype, [600, 2], [0.5] * 1200))
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)]), path)
    verdict = verify(VerifyRequest(*paths, pessimistic=True))
    assert (verdict.verdict, verdict.pessimistic, verdict.findings) == ("passed", "passed", ())
