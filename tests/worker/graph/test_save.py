"""Writing a model whose weights lie in other files: whole, streamed, or not at all."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from service.errors import ConversionFailed
from tests.worker.graph.models import VALUES, model_with, raw
from worker.graph import save as save_module
from worker.graph.dtype import BF16, FP16, HalfType
from worker.graph.load import load
from worker.graph.payload import Payload
from worker.graph.save import Output, save
from worker.graph.skeleton import Skeleton
from worker.graph.weights import Conversion, statistics

Write = Callable[[onnx.ModelProto], Path]


def weight(path: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.load(path).graph.initializer[0])


def as_half(skeleton: Skeleton, half: HalfType, limit: float | None = None) -> Output:
    """All large weights in half."""
    for tensor in skeleton.model.graph.initializer:
        tensor.data_type = half.onnx
    return Output(skeleton, dict.fromkeys(skeleton.payloads, Conversion(half, limit)))


def test_what_is_loaded_and_saved_holds_the_same(write: Write, tmp_path: Path) -> None:
    model = model_with(raw(), numpy_helper.from_array(np.arange(8, dtype=np.float32), "small"))
    save(Output(load(write(model))), tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx") == model


@pytest.mark.parametrize("half", [FP16, BF16], ids=["fp16", "bf16"])
def test_weights_are_rounded_to_nearest_on_the_way(write: Write, tmp_path: Path, half: HalfType) -> None:
    save(as_half(load(write(model_with(raw()))), half), tmp_path / "out.onnx")
    assert weight(tmp_path / "out.onnx").tobytes() == VALUES.astype(half.numpy).tobytes()


def test_a_limit_clamps_what_is_finite_only(write: Write, tmp_path: Path) -> None:
    values = VALUES.copy()
    values[0, :3] = 1e9, -1e9, np.inf
    save(
        as_half(load(write(model_with(numpy_helper.from_array(values, "w")))), FP16, limit=1000.0),
        tmp_path / "out.onnx",
    )
    np.testing.assert_array_equal(weight(tmp_path / "out.onnx")[0, :3], np.array([1000, -1000, np.inf], np.float16))


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save_module, "LARGEST_FILE", 2000)


@pytest.mark.usefixtures("small_files")
def test_weights_of_a_large_model_go_beside_it_aligned(write: Write, tmp_path: Path) -> None:
    save(Output(load(write(model_with(raw("a"), raw("b"))))), tmp_path / "out.onnx")
    tensors = onnx.load(tmp_path / "out.onnx", load_external_data=False).graph.initializer
    entries = [{entry.key: entry.value for entry in tensor.external_data} for tensor in tensors]
    assert [entry["location"] for entry in entries] == ["out.onnx.data"] * 2
    assert [int(entry["offset"]) for entry in entries] == [0, 4096]
    np.testing.assert_array_equal(weight(tmp_path / "out.onnx"), VALUES)


@pytest.mark.usefixtures("small_files")
def test_tensors_with_the_same_source_are_written_once(write: Write, tmp_path: Path) -> None:
    skeleton = load(write(model_with(raw("a"))))
    twin = TensorProto()
    twin.CopyFrom(skeleton.model.graph.initializer[0])
    twin.name = "b"
    skeleton.model.graph.initializer.append(twin)
    save(Output(skeleton), tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").stat().st_size == VALUES.nbytes


def test_a_failure_leaves_what_was_there(write: Write, tmp_path: Path) -> None:
    skeleton = load(write(model_with(raw())))
    key, payload = next(iter(skeleton.payloads.items()))
    skeleton.payloads[key] = Payload(tmp_path / "gone", payload.offset, payload.length)
    target = tmp_path / "out.onnx"
    target.write_bytes(b"before")
    with pytest.raises(ConversionFailed, match=r"out\.onnx"):
        save(Output(skeleton), target)
    assert target.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "out.onnx"]


@pytest.mark.parametrize("size", [1, 4, 1000, 4096, 1 << 20])
def test_chunks_make_up_the_payload_whatever_their_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"head" + VALUES.tobytes())
    assert b"".join(Payload(path, 4, VALUES.nbytes).chunks(size)) == VALUES.tobytes()


@pytest.mark.parametrize(
    ("values", "max_abs", "lost", "non_finite"),
    [
        ([0.5, -3.0, 2.0], 3.0, 0.0, 0),
        ([1e-8, -1e-8], 1e-8, 1.0, 0),
        ([np.inf, np.nan, 4.0], 4.0, 0.0, 2),
        ([], 0.0, 0.0, 0),
    ],
    ids=["ordinary", "vanishing", "non-finite", "empty"],
)
def test_statistics_tell_what_rounding_would_do(
    values: list[float], max_abs: float, lost: float, non_finite: int
) -> None:
    tensor = numpy_helper.from_array(np.array(values, np.float32), "w")
    found = statistics(Skeleton(onnx.ModelProto()), tensor, FP16)
    assert (found.max_abs, found.lost, found.non_finite) == (
        pytest.approx(max_abs),
        pytest.approx(lost, abs=1e-3),
        non_finite,
    )
