"""The user's own inputs, from files: each `.npz` is one set of inputs; `.pb` tensors are gathered into sets.

A `.pb` file holds one ONNX tensor with the name of its input. Several are one set until a name comes again: that
tensor begins the next set.
"""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from service.errors import InvalidSample
from worker.verify.inputs import InputSpec

Feed = dict[str, NDArray[Any]]
_ZIP_MAGIC = b"PK"


def read_samples(files: Sequence[Path], specs: tuple[InputSpec, ...]) -> list[Feed]:
    """One set of values for each run. Raises InvalidSample for files that cannot be read or do not fit the model."""
    feeds = [_checked(feed, specs, where) for where, feed in _feeds(files)]
    if not feeds:
        raise InvalidSample("There is no sample in the files; give .npz or .pb files with values for every input.")
    return feeds


def _feeds(files: Sequence[Path]) -> Iterator[tuple[str, Feed]]:
    loose: Feed = {}
    for file in files:
        if _is_archive(file):
            yield file.name, _read_archive(file)
            continue
        name, values = _read_tensor(file)
        if name in loose:
            yield "the .pb tensors", loose
            loose = {}
        loose[name] = values
    if loose:
        yield "the .pb tensors", loose


def _is_archive(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(2) == _ZIP_MAGIC
    except OSError as error:
        raise InvalidSample(f"{file.name} cannot be read: {error.strerror}.") from error


def _read_archive(file: Path) -> Feed:
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidSample(f"{file.name} is no .npz archive of arrays: {error}. Write it with numpy.savez.") from error


def _read_tensor(file: Path) -> tuple[str, NDArray[Any]]:
    tensor = TensorProto()
    try:
        tensor.ParseFromString(file.read_bytes())
        return tensor.name, numpy_helper.to_array(tensor)
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise InvalidSample(f"{file.name} is neither an .npz archive nor an ONNX tensor: {error}.") from error


def _checked(feed: Feed, specs: tuple[InputSpec, ...], where: str) -> Feed:
    wanted = {spec.name: spec for spec in specs}
    if missing := sorted(wanted.keys() - feed.keys()):
        raise InvalidSample(f"{where} has no values for {', '.join(map(repr, missing))}.")
    if unknown := sorted(feed.keys() - wanted.keys()):
        known = ", ".join(map(repr, wanted))
        raise InvalidSample(f"{where} has values for {unknown[0]!r}; the model's inputs are {known}.")
    for name, spec in wanted.items():
        _check(feed[name], spec, where)
    return feed


def _check(values: NDArray[Any], spec: InputSpec, where: str) -> None:
    if values.dtype != spec.dtype:
        raise InvalidSample(f"{where}: {spec.name!r} has dtype {values.dtype}; the model takes {spec.dtype}.")
    fits = len(values.shape) == len(spec.dims) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(spec.dims, values.shape, strict=True)
    )
    if not fits:
        raise InvalidSample(
            f"{where}: {spec.name!r} has shape {list(values.shape)}; the model takes "
            f"[{', '.join('?' if dim is None else str(dim) for dim in spec.dims)}]."
        )
