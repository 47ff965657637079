from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from worker.graph.load import load
from worker.precision.convert import convert
from worker.types import ConvertRequest
from worker.verify.check import verify
from worker.verify.emulate import emulate
from worker.verify.runnable import make_runnable
from worker.verify.session import Session
from worker.verify.types import VerifyRequest
from worker.verify.watchdog import Watchdog

WriteAt = Callable[[str, int], Path]
Feed = Mapping[str, Any]

BATCH, HEADS, QUERIES, KEYS, PAST, SIZE = 2, 4, 5, 7, 3, 8


@pytest.fixture
def write_at(tmp_path: Path) -> WriteAt:
    """Write a model given as ONNX text without its header, at an opset."""

    def write(text: str, opset: int) -> Path:
        path = tmp_path / "model.onnx"
        onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}'), path)
        return path

    return write


def run(path: Path, feed: Feed, prepare: Callable[..., object] = lambda _: None) -> dict[str, np.ndarray]:
    skeleton = load(path)
    prepare(skeleton)
    return Session(skeleton, path.parent, "model").run(feed, Watchdog(60, 8 << 30))


def reference(path: Path, feed: Feed) -> list[np.ndarray]:
    return ReferenceEvaluator(onnx.load(path)).run(None, dict(feed))


# --- Where -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [9, 16, 23])
@pytest.mark.parametrize(
    ("c", "x", "y"), [((4,), (4,), (4,)), ((3, 1), (4,), ()), ((), (2, 3), (1, 3)), ((2, 1, 1), (1, 3, 1), (4,))]
)
def test_where_chooses_between_truths(write_at: WriteAt, opset: int, c: tuple, x: tuple, y: tuple) -> None:
    random = np.random.default_rng(0)
    feed = {name: np.asarray(random.random(shape) < 0.5) for name, shape in {"c": c, "x": x, "y": y}.items()}
    rank = max(map(len, (c, x, y)))
    path = write_at(f"g ({_declare(feed)}) => (bool[{_dims(rank)}] z) {{ z = Where(c, x, y) }}", opset)
    np.testing.assert_array_equal(run(path, feed)["z"], np.where(*feed.values()))


def test_where_in_inner_graphs_and_in_a_row(write_at: WriteAt) -> None:
    text = """g (bool flag, bool[n] x, bool[n] y) => (bool[n] z) {
        w = Where(x, y, x)
        z = If (flag) <
            then_branch = yes () => (bool[n] a) { a1 = Where(w, x, y) a = Where(a1, y, w) },
            else_branch = no () => (bool[n] b) { b = Where(y, w, x) }> }"""
    path = write_at(text, 20)
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    for flag in (True, False):
        feed = {"flag": np.array(flag), "x": x, "y": y}
        np.testing.assert_array_equal(run(path, feed)["z"], reference(path, feed)[0])


# --- Attention -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("of_bools", [True, False])
@pytest.mark.parametrize("mask", [(7,), (1, 7), (5, 7), (1, 1, 7), (4, 1, 7), (2, 1, 1, 7), (1, 4, 1, 7), (2, 4, 5, 7)])
@pytest.mark.parametrize(
    ("kv_heads", "attributes"), [(4, ""), (2, ""), (1, "softcap = 2.0, scale = 0.5"), (2, "is_causal = 1")]
)
def test_attention_takes_masks_that_broadcast(
    write_at: WriteAt, opset: int, of_bools: bool, mask: tuple, kv_heads: int, attributes: str
) -> None:
    feed = {**_heads(kv_heads), "m": _mask(mask, of_bools)}
    _assert_attends(write_at(_attention(feed, attributes), opset), feed)


def test_attention_takes_masks_without_heads_of_their_own(write_at: WriteAt) -> None:
    feed = {name: _flat(value) for name, value in _heads(2).items()} | {"m": _mask((1, 7), of_bools=True)}
    _assert_attends(write_at(_attention(feed, "q_num_heads = 4, kv_num_heads = 2", rank=3), 23), feed)


def test_keys_of_the_past_count(write_at: WriteAt) -> None:
    past = np.random.default_rng(1).standard_normal((2, BATCH, HEADS, PAST, SIZE), np.float32)
    feed = {**_heads(4), "m": _mask((1, KEYS + PAST), of_bools=False), "pk": past[0], "pv": past[1]}
    text = f"""g ({_declare(feed)}) => (float[a, b, c, d] z, float[a, b, e, d] k2, float[a, b, e, d] v2) {{
        z, k2, v2 = Attention(q, k, v, m, pk, pv) }}"""
    _assert_attends(write_at(text, 23), feed)


def test_attention_in_half_is_rounded_once(write_at: WriteAt) -> None:
    feed = {name: value.astype(np.float16) for name, value in _heads(2).items()} | {
        "m": _mask((2, 1, 1, 7), of_bools=True)
    }
    in_half = run(write_at(_attention(feed), 23), feed, emulate)["z"]
    wide = {name: value if value.dtype == np.bool_ else value.astype(np.float32) for name, value in feed.items()}
    np.testing.assert_array_equal(in_half, run(write_at(_attention(wide), 23), wide)["z"].astype(np.float16))


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "g (bool[n] c, float[n] x) => (float[n] z) { z = Where(c, x, x) }",
        "g (float[2, 4, n, 8] q, float[2, 2, s, 8] k) => (float[2, 4, n, 8] z) { z = Attention(q, k, k) }",
    ],
)
def test_what_runs_as_it_stands_is_left_alone(write_at: WriteAt, text: str) -> None:
    skeleton = load(write_at(text, 23))
    before = skeleton.model.SerializeToString(deterministic=True)
    make_runnable(skeleton)
    assert skeleton.model.SerializeToString(deterministic=True) == before


def test_a_conversion_with_both_is_verified(write_at: WriteAt, tmp_path: Path) -> None:
    text = """g (float[2, 5, 32] x, bool[2, 1, 1, 5] m) => (float[2, 5, 32] y)
        <float[1] w = {0}> {
        n = Not(m) both = Where(m, m, n) q = MatMul(x, w)
        y = Attention<q_num_heads = 4, kv_num_heads = 4>(q, q, x, both) }"""
    path = write_at(text, 23)
    model = onnx.load(path)
    values = np.random.default_rng(0).standard_normal((32, 32), np.float32) / 6
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(values, "w"))
    onnx.save(model, path)
    convert(ConvertRequest(path, tmp_path / "converted.onnx"))
    verdict = verify(VerifyRequest(path, tmp_path / "converted.onnx"))
    assert (verdict.verdict, verdict.reason) == ("passed", None)


def _assert_attends(path: Path, feed: Feed) -> None:
    """As ONNX's reference does; that makes as many causal rows as the mask has, so it is given all of them."""
    mask = feed["m"]
    full = np.broadcast_to(mask, (*mask.shape[:-2], QUERIES, mask.shape[-1]))
    outputs = run(path, feed)
    model = onnx.load(path)
    model.graph.input[3].CopyFrom(
        onnx.helper.make_tensor_value_info("m", model.graph.input[3].type.tensor_type.elem_type, full.shape)
    )
    for got, expected in zip(outputs.values(), ReferenceEvaluator(model).run(None, {**feed, "m": full}), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-6)


def _attention(feed: Feed, attributes: str = "", rank: int = 4) -> str:
    listed = f"<{attributes}>" if attributes else ""
    out = "float16" if feed["q"].dtype == np.float16 else "float"
    return f"g ({_declare(feed)}) => ({out}[{_dims(rank)}] z) {{ z = Attention {listed} ({', '.join(feed)}) }}"


def _heads(kv_heads: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = {"q": (HEADS, QUERIES), "k": (kv_heads, KEYS), "v": (kv_heads, KEYS)}
    return {name: random.standard_normal((BATCH, *shape, SIZE), np.float32) for name, shape in shapes.items()}


def _flat(value: np.ndarray) -> np.ndarray:
    return value.transpose(0, 2, 1, 3).reshape(BATCH, value.shape[2], -1)


def _mask(shape: tuple[int, ...], of_bools: bool) -> np.ndarray:
    keep = np.arange(np.prod(shape)).reshape(shape) % 3 != 1
    return keep if of_bools else np.where(keep, 0.25, -2.0).astype(np.float32)


def _declare(feed: Feed) -> str:
    names = {"bool": "bool", "float32": "float", "float16": "float16"}
    return ", ".join(f"{names[value.dtype.name]}{_shape(value)} {name}" for name, value in feed.items())


def _shape(value: np.ndarray) -> str:
    return f"[{', '.join(map(str, value.shape))}]" if value.shape else ""


def _dims(rank: int) -> str:
    return ", ".join("abcdef"[:rank])
