"""A conversion leaves a whole file or none, whatever happens to it, and in little memory."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from service.errors import (
    ExternalDataMissing,
    ExternalDataPath,
    ExternalDataRange,
    InsufficientStorage,
    ProblemError,
)
from tests.worker.precision.large import write_mlp
from worker.graph.skeleton import length_prefixed
from worker.precision.convert import convert
from worker.types import ConvertRequest

CONVERT = """
import sys
from pathlib import Path
from worker.precision.convert import convert
from worker.types import ConvertRequest
print("ready", flush=True)
sys.stdin.readline()
convert(ConvertRequest(Path(sys.argv[1]), Path(sys.argv[2])))
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""
KILLS = 20


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two layers of 64 KiB."""
    return write_mlp(tmp_path / "model.onnx", layers=2, width=128)


def entry(tensor: TensorProto, key: str) -> onnx.StringStringEntryProto:
    return next(entry for entry in tensor.external_data if entry.key == key)


def point(source: Path, key: str, value: str) -> None:
    """Changes where the second weight lies."""
    model = onnx.load(source, load_external_data=False)
    entry(model.graph.initializer[1], key).value = value
    source.write_bytes(model.SerializeToString())


def cut(source: Path, size: int) -> None:
    os.truncate(source.with_name(f"{source.name}.data"), size)


BROKEN: dict[str, tuple[tuple[str, str] | int, type[ProblemError]]] = {
    "truncated": (2 * 4 * 128**2 - 1, ExternalDataRange),
    "empty": (0, ExternalDataRange),
    "beyond the end": (("offset", str(4 * 128**2 + 4)), ExternalDataRange),
    "far beyond": (("offset", str(1 << 62)), ExternalDataRange),
    "shorter than its shape": (("length", "8"), ExternalDataRange),
    "elsewhere": (("location", "../model.onnx.data"), ExternalDataPath),
    "missing": (("location", "none.data"), ExternalDataMissing),
}


@pytest.mark.parametrize(("fault", "error"), BROKEN.values(), ids=BROKEN)
def test_bad_external_data_is_refused_before_a_byte_is_written(
    source: Path, out: Path, fault: tuple[str, str] | int, error: type[ProblemError]
) -> None:
    if isinstance(fault, int):
        cut(source, fault)
    else:
        point(source, *fault)
    with pytest.raises(error, match=r"'w[01]'"):
        convert(ConvertRequest(source, out / "model.onnx"))
    assert names(out) == []


@pytest.mark.parametrize("offset", [0, 4], ids=["tied", "overlapping"])
def test_weights_may_share_bytes(source: Path, out: Path, offset: int) -> None:
    point(source, "offset", str(offset))
    convert(ConvertRequest(source, out / "model.onnx"))
    before, after = onnx.load(source).graph.initializer, onnx.load(out / "model.onnx").graph.initializer
    for old, new in zip(before, after, strict=True):
        half = numpy_helper.to_array(old).astype(np.float16)
        np.testing.assert_array_equal(numpy_helper.to_array(new), half)


def test_external_data_without_length_and_in_many_files_is_read(source: Path, out: Path) -> None:
    model = onnx.load(source, load_external_data=False)
    second = model.graph.initializer[1]
    second.external_data.remove(entry(second, "length"))
    (source.parent / "deep" / "er").mkdir(parents=True)
    shutil.copyfile(source.with_name("model.onnx.data"), source.parent / "deep" / "er" / "w1")
    entry(second, "location").value = "deep/er/w1"
    source.write_bytes(model.SerializeToString())
    convert(ConvertRequest(source, out / "model.onnx"))
    weights = onnx.load(out / "model.onnx").graph.initializer
    assert [numpy_helper.to_array(weight)[0, 0] for weight in weights] == [0.25, 0.25]


def test_an_upload_that_is_copied_is_whole_or_not_there_too(source: Path, out: Path) -> None:
    convert(ConvertRequest(source, out / "renamed.onnx", mode="none"))
    assert names(out) == ["model.onnx.data", "renamed.onnx"]
    for copy, original in (("renamed.onnx", source), ("model.onnx.data", source.with_name("model.onnx.data"))):
        assert (out / copy).read_bytes() == original.read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("mode", ["rope", "none"], ids=["converted", "copied"])
def test_a_full_disk_is_an_error_that_leaves_nothing(tmp_path: Path, small_disk: Path, mode: str) -> None:
    source = write_mlp(tmp_path / "model.onnx", layers=4, width=512)
    with pytest.raises(InsufficientStorage, match="disk is full"):
        convert(ConvertRequest(source, small_disk / "model.onnx", mode=mode))
    assert names(small_disk) == []


@pytest.mark.parametrize("mode", ["rope", "none"], ids=["converted", "copied"])
def test_a_full_disk_leaves_what_was_there_before(tmp_path: Path, small_disk: Path, mode: str) -> None:
    source = write_mlp(tmp_path / "model.onnx", layers=4, width=512)
    (small_disk / "model.onnx").write_bytes(b"of an earlier run")
    with pytest.raises(InsufficientStorage):
        convert(ConvertRequest(source, small_disk / "model.onnx", mode=mode))
    assert (small_disk / "model.onnx").read_bytes() == b"of an earlier run"


def start(source: Path, target: Path) -> subprocess.Popen[str]:
    """A process that converts as soon as it gets a line."""
    child = subprocess.Popen(
        [sys.executable, "-c", CONVERT, str(source), str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.slow
def test_a_conversion_that_is_killed_leaves_no_file_and_the_next_one_sweeps(tmp_path: Path, out: Path) -> None:
    source, target = write_mlp(tmp_path / "model.onnx", layers=50, width=1024), out / "model.onnx"
    with start(source, target) as child:
        began = time.monotonic()
        go(child)
        child.wait()
        duration = time.monotonic() - began
    whole = target.read_bytes()
    target.unlink()
    left = 0
    for moment in random.Random(0).choices(range(100), k=KILLS):
        with start(source, target) as child:
            go(child)
            time.sleep(duration * moment / 100)
            child.send_signal(signal.SIGKILL)
        assert not target.exists() or target.read_bytes() == whole
        target.unlink(missing_ok=True)
        left = max(left, len(names(out)))
    assert left == 1, "no kill came while the file was being written, or drafts of the dead were not swept"
    convert(ConvertRequest(source, target))
    assert names(out) == ["model.onnx"]
    assert target.read_bytes() == whole


def peak_kilobytes(source: Path, target: Path) -> int:
    """The largest resident memory of a process that converts."""
    child = start(source, target)
    said, _ = child.communicate("\n")
    assert child.returncode == 0
    return int(said.split()[1])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_model(tmp_path: Path, out: Path) -> None:
    peaks = [
        peak_kilobytes(write_mlp(tmp_path / f"{layers}.onnx", layers, width=2048), out / f"{layers}.onnx")
        for layers in (20, 60)
    ]
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.slow
def test_one_weight_of_more_than_2_gb_and_a_result_of_more_than_2_gb(tmp_path: Path, out: Path) -> None:
    source = write_mlp(tmp_path / "model.onnx", layers=2, width=24_000)
    convert(ConvertRequest(source, out / "model.onnx"))
    model = onnx.load(out / "model.onnx", load_external_data=False)
    size = 2 * 24_000**2
    assert [entry(weight, "length").value for weight in model.graph.initializer] == [str(size)] * 2
    with (out / "model.onnx.data").open("rb") as data:
        for weight in model.graph.initializer:
            data.seek(int(entry(weight, "offset").value))
            assert np.frombuffer(data.read(2 * 24_001), np.float16).tolist() == [0.25] * 24_000 + [0.0]


@pytest.mark.slow
def test_one_graph_of_more_than_2_gb_is_read(tmp_path: Path, out: Path) -> None:
    """Protobuf itself could not; the result fits into one file again."""
    width, source = 24_000, tmp_path / "model.onnx"
    head = write_mlp(tmp_path / "outside.onnx", layers=1, width=width).read_bytes()
    source.write_bytes(_with_weight_inside(onnx.load_from_string(head), 4 * width**2))
    os.truncate(source, source.stat().st_size + 4 * width**2)
    convert(ConvertRequest(source, out / "model.onnx"))
    assert (out / "model.onnx").stat().st_size == pytest.approx(2 * width**2, abs=1000)
    (weight,) = onnx.load(out / "model.onnx").graph.initializer
    assert (list(weight.dims), weight.data_type) == ([width, width], TensorProto.FLOAT16)


def _with_weight_inside(model: onnx.ModelProto, size: int) -> bytes:
    """The file up to the weight's bytes, which come last in it."""
    weight = model.graph.initializer[0]
    body = TensorProto(name=weight.name, dims=weight.dims, data_type=weight.data_type).SerializeToString()
    body += length_prefixed(9, size)
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString() + length_prefixed(5, len(body) + size) + body
    model.ClearField("graph")
    return bytes(model.SerializeToString() + length_prefixed(7, len(graph) + size) + graph)
