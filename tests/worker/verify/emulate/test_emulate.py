from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from worker.graph.load import load
from worker.verify.emulate import emulate
from worker.verify.types import Unverifiable

Write = Callable[..., Path]
Run = Callable[[Path, Mapping[str, Any]], dict[str, np.ndarray]]

TYPES = {"float16": (10, np.float16), "bfloat16": (16, ml_dtypes.bfloat16)}
# Values at the edges of FP16: subnormals, ties, the largest, what rounds to it, what overflows.
EDGES = np.array(
    [0.0, -0.0, 1e-8, 2.98e-8, 5.97e-8, 6.1e-5, 0.1, 1.0, 1.00048828125, 2049.0, 65504.0, 65519.0, 65520.0, -7e4, 1e30],
    np.float32,
)


def model(body: str, half: str, inputs: str = "float[n] a, float[n] b") -> str:
    """A graph in half between casts: `body` computes `y` from `p` and `q`."""
    to = TYPES[half][0]
    return f"g ({inputs}) => (float[] z) {{ p = Cast<to = {to}>(a) q = Cast<to = {to}>(b) {body} z = Cast<to = 1>(y) }}"


def reference(path: Path, feed: Mapping[str, Any]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(onnx.load(path)).run(None, dict(feed))[0]


@pytest.mark.parametrize("half", TYPES)
@pytest.mark.parametrize(
    "body",
    [
        "y = Identity(p)",
        "y = Add(p, q)",
        "y = Sub(p, q)",
        "y = Mul(p, q)",
        "y = Div(p, q)",
        "y = Max(p, q)",
        "y = Neg(p)",
        "y = Concat<axis = 0>(p, q)",
        "y = Sqrt(q)",
        "s = Add(p, q) y = Mul(s, q)",
    ],
)
def test_one_rounding_a_node_is_bit_equal(write: Write, run_emulated: Run, half: str, body: str) -> None:
    path = write(model(body, half))
    feed = {"a": EDGES, "b": np.linspace(0.5, 300.0, EDGES.size, dtype=np.float32)}
    np.testing.assert_array_equal(run_emulated(path, feed)["z"], reference(path, feed))


@pytest.mark.parametrize(("half", "tolerance"), [("float16", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        ("y = MatMul(p, q)", ((7, 40), (40, 5))),
        ("s = Add(p, q) y = Softmax<axis = -1>(s)", ((4, 9), (4, 9))),
        ("y = LayerNormalization(p, q)", ((4, 9), (9,))),
    ],
)
def test_inner_arithmetic_is_float32(
    write: Write, run_emulated: Run, half: str, tolerance: float, body: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    path = write(model(body, half, "float[] a, float[] b"))
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    got = run_emulated(path, {"a": a, "b": b})["z"]
    np.testing.assert_allclose(got, reference(path, {"a": a, "b": b}), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(got, got.astype(TYPES[half][1]).astype(np.float32))


@pytest.mark.parametrize(("half", "expected"), [("float16", np.inf), ("bfloat16", 160000.0)])
def test_overflow_between_nodes_shows(write: Write, run_emulated: Run, half: str, expected: float) -> None:
    path = write(model("s = Mul(p, p) y = Mul(s, q)", half))
    z = run_emulated(path, {"a": np.float32([400]), "b": np.float32([1])})["z"]
    assert z[0] == pytest.approx(expected, rel=1e-2)


def test_rms_norm_overflow_that_onnxruntime_hides(write: Write, run_emulated: Run) -> None:
    norm = "two = Constant<value = float16 {half(2.0)}>() s = Pow(p, two) m = ReduceMean(s) r = Sqrt(m) y = Div(p, r)"
    path = write(model(norm, "float16"))
    feed = {"a": np.float32([600, 300, 1, -2]), "b": np.float32([0])}
    exact = feed["a"] / np.sqrt(np.mean(np.square(feed["a"])))
    (hidden,) = onnxruntime.InferenceSession(path).run(None, feed)
    np.testing.assert_allclose(hidden, exact, rtol=2e-3)
    np.testing.assert_array_equal(run_emulated(path, feed)["z"], np.zeros(4, np.float32))


MASKS = """
    zero = Constant<value = float16 {{half(0.0)}}>() low = Constant<value = float16 {{half({low})}}>()
    keep = Cast<to = 9>(q) mask = Where(keep, zero, low) s = Add(p, mask) y = Softmax<axis = -1>(s)
"""


@pytest.mark.parametrize("low", ["-65504.0", "-10000.0"])
def test_masked_positions_have_no_probability(write: Write, run_emulated: Run, low: str) -> None:
    path = write(model(MASKS.format(low=low), "float16"))
    z = run_emulated(path, {"a": np.float32([3, 5, 900]), "b": np.float32([1, 1, 0])})["z"]
    np.testing.assert_allclose(z, [0.1192, 0.8808, 0.0], atol=1e-3)


SUBGRAPHS = {
    "if": """
        c = Greater(p, q)
        k = Squeeze(c)
        y = If(k) <
            then_branch = t () => (float16[n] u) { w = Mul(p, p) u = Mul(w, q) },
            else_branch = e () => (float16[n] v) { one = Constant<value = float16 {half(1.0)}>() v = Add(q, one) }>
    """,
    "loop": """
        times = Constant<value = int64 {3}>() go = Constant<value = bool {1}>()
        y, all = Loop(times, go, p) <
            body = l (int64 i, bool on, float16[n] x) => (bool on2, float16[n] x2, float16[n] seen) {
                on2 = Identity(on) x2 = Mul(x, q) seen = Identity(x2) }>
    """,
    "scan": """
        zero = Sub(p, p)
        total, y = Scan <num_scan_inputs = 1,
            body = s (float16 state, float16 item) => (float16 state2, float16 part) {
                state2 = Add(state, item) part = Mul(state2, state2) }> (start, p)
    """,
}


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        ("if", [400], [2], [np.inf]),
        ("if", [2], [4096], [4096]),
        ("loop", [2049], [1], [2048]),
        ("loop", [60], [60], [np.inf]),
    ],
)
def test_subgraphs_round_as_well(
    write: Write, run_emulated: Run, kind: str, a: list[float], b: list[float], expected: list[float]
) -> None:
    path = write(model(SUBGRAPHS[kind], "float16"))
    np.testing.assert_array_equal(run_emulated(path, {"a": np.float32(a), "b": np.float32(b)})["z"], expected)


def test_scan_state_accumulates_in_half(write: Write, run_emulated: Run) -> None:
    start = "start = Constant<value = float16 {half(2048.0)}>() "
    path = write(
        model(start + SUBGRAPHS["scan"].replace("part = Mul(state2, state2)", "part = Identity(state2)"), "float16")
    )
    z = run_emulated(path, {"a": np.float32([1, 1, 3]), "b": np.float32([0, 0, 0])})["z"]
    np.testing.assert_array_equal(z, [2048, 2048, 2052])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("shape = Shape(p) y = ConstantOfShape<value = float16[1] {half(0.1)}>(shape)", [0.0999755859375] * 2),
        ("y = CastLike(a, p)", [2048.0, 0.0999755859375]),
        ("i = Cast<to = 7>(p) f = Cast<to = 10>(i) y = Add(f, q)", [2048.0, 1.0]),
        (
            "s = SequenceConstruct(p, q) n = Constant<value = int64 {0}>() y = SequenceAt(s, n)",
            [2048.0, 0.0999755859375],
        ),
        ("c = Cast<to = 16>(p) y = Cast<to = 10>(c)", [2048.0, 0.10009765625]),
    ],
)
def test_dtypes_in_attributes_and_sequences(write: Write, run_emulated: Run, body: str, expected: list[float]) -> None:
    path = write(model(body, "float16"))
    z = run_emulated(path, {"a": np.float32([2049, 0.1]), "b": np.float32([1, 1])})["z"]
    np.testing.assert_array_equal(z, expected)


def test_eye_like_in_half(write: Write, run_emulated: Run) -> None:
    path = write(model("e = EyeLike<dtype = 10>(p) y = Mul(e, q)", "float16", "float[n, m] a, float[n, m] b"))
    feed = {"a": np.zeros((2, 3), np.float32), "b": np.full((2, 3), 2049, np.float32)}
    np.testing.assert_array_equal(run_emulated(path, feed)["z"], np.eye(2, 3) * 2048)


def test_half_inputs_and_outputs_keep_their_names_and_dtypes(write: Write, run_emulated: Run) -> None:
    text = """g (float16[n] x, float16[n] w) => (float16[n] y, float16[n] x, float16[n] k)
        <float16[2] k = {half(1.0), half(2.0)}> { y = Add(x, w) unused = Mul(y, k) }"""
    got = run_emulated(write(text), {"x": np.float16([2048, 3]), "w": np.float16([1, 4])})
    assert list(got) == ["y", "x", "k"]
    assert {value.dtype for value in got.values()} == {np.dtype(np.float16)}
    np.testing.assert_array_equal(got["y"], np.float16([2048, 7]))
    np.testing.assert_array_equal(got["k"], np.float16([1, 2]))


def test_nodes_may_share_a_name(write: Write, run_emulated: Run) -> None:
    path = write(model("[same] s = Add(p, q) [same] y = Mul(s, s)", "float16"))
    z = run_emulated(path, {"a": np.float32([2]), "b": np.float32([1])})["z"]
    np.testing.assert_array_equal(z, [9])


def test_large_weights_are_read_where_they_lie(tmp_path: Path, run_emulated: Run) -> None:
    values = np.random.default_rng(0).standard_normal((3, 1001)).astype(np.float16)
    graph = onnx.parser.parse_graph(
        "g (float[n] x) => (float[] y) "
        "{ c = Constant<value = float16[1] {0}>() h = Cast<to = 10>(x) a = Add(h, w) "
        "b = Mul(a, c) y = Cast<to = 1>(b) }"
    )
    graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    graph.node[0].attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(values[:1], ""))
    model_proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    for path, external in ((tmp_path / "a.onnx", False), (tmp_path / "b.onnx", True)):
        copy = onnx.ModelProto.FromString(model_proto.SerializeToString())
        onnx.save(copy, path, save_as_external_data=external, location="b.data", size_threshold=0)
        z = run_emulated(path, {"x": np.ones(1, np.float32)})["y"]
        np.testing.assert_array_equal(z, ((np.float16(1) + values) * values[:1]).astype(np.float32))


def test_types_that_nobody_tells_are_refused_by_node(write: Write) -> None:
    path = write("g (float[n] x) => (float[n] y) { h = Cast<to = 7>(x) [odd] k = acme.Mystery(h) y = Cast<to = 1>(k) }")
    with pytest.raises(Unverifiable, match=r"'odd' \(acme::Mystery\)"):
        emulate(load(path))
