"""Samples: what files may hold, and what is said of those that do not fit."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from service.errors import InvalidSample
from worker.verify.check import verify
from worker.verify.inputs import InputSpec
from worker.verify.samples import read_samples
from worker.verify.types import VerifyRequest

SPECS = (
    InputSpec("x", np.dtype(np.float32), ("n", 4)),
    InputSpec("ids", np.dtype(np.int64), (None,)),
)
X, IDS = np.ones((2, 4), np.float32), np.arange(3)


def archive(folder: Path, name: str = "s.npz", **arrays: object) -> Path:
    np.savez_compressed(folder / name, **arrays)  # type: ignore[arg-type]
    return folder / name


def tensor(folder: Path, file: str, name: str, values: np.ndarray) -> Path:
    (folder / file).write_bytes(numpy_helper.from_array(values, name).SerializeToString())
    return folder / file


def test_each_archive_is_a_set_of_inputs(tmp_path: Path) -> None:
    files = [archive(tmp_path, f"{at}.npz", x=X + at, ids=IDS) for at in range(3)]
    assert [float(feed["x"][0, 0]) for feed in read_samples(files, SPECS)] == [1, 2, 3]


def test_tensors_are_gathered_until_a_name_comes_again(tmp_path: Path) -> None:
    files = [
        tensor(tmp_path, f"{at}_{name}.pb", name, values)
        for at in (0, 1)
        for name, values in (("x", X * at), ("ids", IDS + at))
    ]
    assert [feed["ids"].tolist() for feed in read_samples(files, SPECS)] == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "no values for 'ids'"),
        ({"x": X, "ids": IDS, "mask": X}, "values for 'mask'; the model's inputs are 'x', 'ids'"),
        ({"x": X.astype(np.float64), "ids": IDS}, "'x' has dtype float64; the model takes float32"),
        ({"x": X[:, :3], "ids": IDS}, r"'x' has shape \[2, 3\]; the model takes \[n, 4\]"),
        ({"x": X, "ids": IDS[None]}, r"'ids' has shape \[1, 3\]; the model takes \[\?\]"),
        ({"x": np.array([None]), "ids": IDS}, "no .npz archive of arrays"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InvalidSample, match=message):
        read_samples([archive(tmp_path, **arrays)], SPECS)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 cut", b"neither"])
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(InvalidSample):
        read_samples([tmp_path / "s"], SPECS)


def test_a_sample_that_the_model_does_not_take_is_told_and_not_left_out(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    path = write("g (float[n, 4] x) => (float[2, 4] y) { k = Constant<value_ints = [2, 4]>() y = Reshape(x, k) }")
    files = (archive(tmp_path, "a.npz", x=X), archive(tmp_path, "b.npz", x=X[:1]))
    with pytest.raises(InvalidSample, match="does not run on sample 2 of 2"):
        verify(VerifyRequest(path, path, samples=files))


def test_the_verdict_is_on_the_samples(tmp_path: Path, write: Callable[..., Path]) -> None:
    source = write("g (float[n, 4] x) => (float[n, 4] y) { y = Mul(x, x) }")
    half = "g (float[n, 4] x) => (float[n, 4] y) { h = Cast<to = 10>(x) s = Mul(h, h) y = Cast<to = 1>(s) }"
    converted = write(half, "half.onnx")
    sizes = {"small": 1.0, "large": 300.0}
    verdicts = {
        name: verify(VerifyRequest(source, converted, samples=(archive(tmp_path, f"{name}.npz", x=X * size),)))
        for name, size in sizes.items()
    }
    assert {name: verdict.verdict for name, verdict in verdicts.items()} == {"small": "passed", "large": "failed"}
    assert {verdict.inputs for verdict in verdicts.values()} == {"samples"}
