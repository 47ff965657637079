from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

from worker.graph.index import build_index
from worker.graph.load import load
from worker.verify.inputs import generate, input_specs, shape_sets
from worker.verify.types import Shapes, Unverifiable

Write = Callable[..., Path]


def draw(path: Path, shapes: Shapes | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    return generate(input_specs(build_index(load(path))), shapes or {}, seed)


def identity(declaration: str) -> str:
    return f"g ({declaration}) => (float[1] y) {{ y = Constant<value = float[1] {{1.0}}>() }}"


@pytest.mark.parametrize(
    ("declaration", "shapes", "expected"),
    [
        ("float[2, 3] a", {}, {"a": (2, 3)}),
        ("float a", {}, {"a": ()}),
        ("float[batch, n] a, float[n, 4] b", {}, {"a": (1, 16), "b": (16, 4)}),
        ("float[n, 3] a, float[n] b", {"a": (7, 3)}, {"a": (7, 3), "b": (7,)}),
        ("float[b, 3, h, w] a", {}, {"a": (1, 3, 64, 64)}),
        ("float[b, n] sound, int64 sr", {}, {"sound": (1, 512), "sr": ()}),
        ("float[2, b, 8] state, float[2, n, 8] hidden_states", {}, {"state": (2, 1, 8), "hidden_states": (2, 16, 8)}),
        ("float[n, m, 8] state", {}, {"state": (1, 16, 8)}),
    ],
)
def test_shapes_come_from_profile_then_graph_then_defaults(
    write: Write, declaration: str, shapes: Shapes, expected: Mapping[str, tuple[int, ...]]
) -> None:
    values = draw(write(identity(declaration)), shapes)
    assert {name: value.shape for name, value in values.items()} == expected


def test_placeholders_are_not_symbols(write: Write, tmp_path: Path) -> None:
    model = onnx.load(write(identity("float[1, 3, n, m] image, float[k, 5] other")))
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = "?"
    onnx.save(model, tmp_path / "q.onnx")
    values = draw(tmp_path / "q.onnx", {"image": (1, 3, 32, 48)})
    assert values["other"].shape == (1, 5)


@pytest.mark.parametrize(
    ("declaration", "low", "high"),
    [
        ("float[64] t", 0, 1),
        ("float[64] seconds_total", 1, 60),
        ("float[1, 9] image", 0, 1),
        ("float[1, 3, 8, 8] a", 0, 1),
        ("int64[64] lengths", 1, 3),
        ("int64[64] timesteps", 0, 999),
        ("int32[64] token_type_ids", 0, 3),
        ("int64 sr", 16_000, 16_000),
        ("int32[1] audio_sample_rate", 16_000, 16_000),
        ("int64[64] learning_rate", 0, 3),
        ("float[1, 64] t5_mask", 0, 1),
        ("int64[1, 64] attention_mask", 0, 1),
    ],
)
def test_values_make_sense_for_their_names(write: Write, declaration: str, low: float, high: float) -> None:
    (value,) = draw(write(identity(declaration))).values()
    assert low <= value.min() <= value.max() <= high


@pytest.mark.parametrize(
    "declaration", ["bool[2, 8] keep", "float[2, 8] mask", "int64[2, 8] attention_mask", "bool flag"]
)
def test_masks_keep_something_and_pad_the_rest(write: Write, declaration: str) -> None:
    (value,) = draw(write(identity(declaration))).values()
    rows = np.atleast_2d(value)
    assert rows[:, 0].all()
    assert set(np.unique(rows)) <= {0, 1}
    assert value.ndim == 0 or not rows[:, -1].any()


def test_token_ids_stay_inside_the_table_they_index(write: Write) -> None:
    text = """g (int32[1, 400] ids, int64[1, 400] position_ids) => (float[] y)
        <float[5, 1] table = {1, 2, 3, 4, 5}, float[3, 1] places = {1, 2, 3}> {
        wide = Cast<to = 7>(ids) flat = Squeeze(wide) a = Gather(table, flat) b = Gather(places, position_ids)
        y = Add(a, b) }"""
    values = draw(write(text))
    assert set(np.unique(values["ids"])) == {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(values["position_ids"][0, :4], [0, 1, 2, 0])


def test_other_floats_are_standard_normal(write: Write) -> None:
    (value,) = draw(write(identity("float[1, 10000] x"))).values()
    assert value.dtype == np.float32
    assert abs(value.mean()) < 0.05
    assert value.std() == pytest.approx(1, abs=0.05)


def test_same_seed_same_values(write: Write) -> None:
    path = write(identity("float[9] x"))
    first, again, other = (draw(path, seed=seed)["x"] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("declaration", ["string[1] words", "seq(float[2]) items", "bfloat16[2] x"])
def test_inputs_that_cannot_be_generated_are_named(write: Write, declaration: str) -> None:
    with pytest.raises(Unverifiable, match=declaration.split()[-1]):
        draw(write(identity(declaration)))


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        ((), [{}]),
        (({"x": ((1,), (4,), (9,))},), [{"x": (1,)}, {"x": (4,)}]),
        (({"x": ((0,), (4,), (9,))},), [{"x": (4,)}]),
        (({"x": ((4,), (4,), (9,))},), [{"x": (4,)}]),
        (({"x": ((1,), (2,), (3,))}, {"x": ((1,), (5,), (9,))}), [{"x": (1,)}, {"x": (2,)}, {"x": (5,)}]),
        (({"x": ((1,), (2,), (3,)), "stranger": ((1,), (1,), (1,))},), [{"x": (1,)}, {"x": (2,)}]),
    ],
)
def test_smallest_shapes_are_tried_before_the_best(write: Write, profiles: tuple, expected: list[Shapes]) -> None:
    assert list(shape_sets(load(write(identity("float[n] x"))).model, profiles)) == expected
