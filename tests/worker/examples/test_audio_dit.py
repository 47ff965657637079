from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit
from worker.examples.graph_builder import save
from worker.examples.spellings import SPELLINGS

TINY = AudioDiTConfig(layers=1, dim=64, heads=1, latent_channels=8, cond_tokens=6, cond_dim=16)
EXPORTERS: tuple[Exporter, ...] = ("torchscript", "dynamo", "opset23")


def feed(config: AudioDiTConfig, length: int, tokens: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    values = {
        "x": random.standard_normal((1, config.latent_channels, length)),
        "t": [0.7],
        "t5_hidden": random.standard_normal((1, config.cond_tokens, config.cond_dim)),
        "t5_mask": [np.arange(config.cond_tokens) < tokens],
        "seconds_total": [30.0],
        "local_add_cond": random.standard_normal((1, config.latent_channels + 1, length)),
    }
    return {name: np.asarray(value, np.float32) for name, value in values.items()}


def run(path: Path, inputs: dict[str, np.ndarray], *outputs: str) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(path).run(list(outputs) or None, inputs)


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("differential", [False, True])
def test_is_valid_and_answers_any_length(tmp_path: Path, exporter: Exporter, differential: bool) -> None:
    config = replace(TINY, exporter=exporter, differential=differential)
    path = tmp_path / "dit.onnx"
    write_audio_dit(path, config)
    onnx.checker.check_model(path, full_check=True)
    for length in (1, 33):
        (velocity,) = run(path, feed(config, length, tokens=4))
        assert velocity.shape == (1, config.latent_channels, length)
        assert np.isfinite(velocity).all()
        assert velocity.std() > 0.1


def test_every_spelling_computes_the_same(tmp_path: Path) -> None:
    answers = []
    for exporter in EXPORTERS:
        write_audio_dit(tmp_path / exporter, replace(TINY, exporter=exporter))
        answers += run(tmp_path / exporter, feed(TINY, 40, tokens=3))
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("exporter", "operators"),
    [
        ("torchscript", {"Pow": 8, "Reciprocal": 0, "Softmax": 2, "Einsum": 1, "Cos": 4, "Exp": 2}),
        ("dynamo", {"Pow": 8, "Reciprocal": 8, "Softmax": 2, "IsNaN": 1, "Cos": 3, "Cast": 2, "Exp": 0}),
        ("opset23", {"RMSNormalization": 8, "Attention": 2, "Pow": 0, "Softmax": 0}),
    ],
)
def test_parts_are_spelled_as_the_exporter_does(tmp_path: Path, exporter: Exporter, operators: dict[str, int]) -> None:
    write_audio_dit(tmp_path / "dit.onnx", replace(TINY, exporter=exporter))
    counts = Counter(node.op_type for node in onnx.load(tmp_path / "dit.onnx").graph.node)
    assert {op: counts[op] for op in operators} == operators


def test_masked_tokens_do_not_matter_and_others_do(tmp_path: Path) -> None:
    write_audio_dit(tmp_path / "dit.onnx", TINY)
    inputs = feed(TINY, 9, tokens=3)
    (before,) = run(tmp_path / "dit.onnx", inputs)
    changed = {token: inputs["t5_hidden"].copy() for token in (2, 3)}
    for token, hidden in changed.items():
        hidden[:, token] += 5
    (kept, masked) = (run(tmp_path / "dit.onnx", {**inputs, "t5_hidden": changed[token]})[0] for token in (2, 3))
    assert not np.array_equal(kept, before)
    np.testing.assert_array_equal(masked, before)


def test_squares_of_the_residual_stream_overflow_half(tmp_path: Path) -> None:
    write_audio_dit(tmp_path / "dit.onnx", replace(TINY, exporter="dynamo"))
    model = onnx.load(tmp_path / "dit.onnx")
    squares = [node.output[0] for node in model.graph.node if node.op_type == "Pow"]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in squares)
    onnx.save(model, tmp_path / "all.onnx")
    largest = max(values.max() for values in run(tmp_path / "all.onnx", feed(TINY, 5, tokens=3), *squares))
    assert largest > np.finfo(np.float16).max


def test_same_configuration_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_audio_dit(tmp_path / name, replace(TINY, seed=seed))
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again
    assert first != other


def test_weights_streamed_to_a_file_equal_those_inside(tmp_path: Path) -> None:
    builder = SPELLINGS["dynamo"](64).builder
    output = builder.linear("a", builder.linear("b", "x", 16, 32), 32, 8)
    builder.rename(output, "y")
    x, y = (onnx.helper.make_tensor_value_info(n, 1, ["n", size]) for n, size in (("x", 16), ("y", 8)))
    for name, external in (("inside", False), ("outside", True)):
        save(builder.model("m", [x], [y]), builder.weights, 7, tmp_path / name, external=external)
    inputs = {"x": np.ones((2, 16), np.float32)}
    np.testing.assert_array_equal(run(tmp_path / "inside", inputs)[0], run(tmp_path / "outside", inputs)[0])
    assert (tmp_path / "outside").stat().st_size < 1000
    assert (tmp_path / "outside.data").stat().st_size == 4096 + 32 * 8 * 4


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"dim": 100}, "dim 100 is not heads x head_dim"), ({"dim": 66, "head_dim": 66}, "head_dim 66 is not a multiple")],
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TINY, **sizes)
