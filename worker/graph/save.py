"""Writes a model whose weights are still in other files: streamed, converted on the way, whole or not at all."""

import errno
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from onnx import TensorProto

from service.errors import ConversionFailed, InsufficientStorage
from worker.graph import walk
from worker.graph.skeleton import Skeleton, fields, length_prefixed
from worker.graph.stream import Peaks, Piece, Source, length_of, write_pieces
from worker.graph.weights import Conversion

LARGEST_FILE = (2 << 30) - (1 << 20)
"""Protobuf refuses messages of 2 GiB; above this the weights go into a file of their own."""

_ALIGNMENT = 4096
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_RAW_DATA, _DATA_LOCATION, _EXTERNAL_DATA = 9, 14, 13
_PATHS: dict[str, dict[int, str]] = {
    "ModelProto": {7: "GraphProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {5: "TensorProto", 6: "GraphProto", 10: "TensorProto", 11: "GraphProto"},
}


@dataclass(slots=True)
class Output:
    """A skeleton to write, and the payload keys that are converted on the way."""

    skeleton: Skeleton
    conversions: dict[str, Conversion] = field(default_factory=dict)

    def source_of(self, tensor: TensorProto) -> Source | None:
        """None for a tensor whose bytes are in the skeleton."""
        return self.source(_key(tensor)) if _is_external(tensor) else None

    def source(self, key: str) -> Source:
        return Source(self.skeleton.payloads[key], self.conversions.get(key))


@dataclass(slots=True)
class Draft:
    """A model under temporary names: `write` it, look at what the conversion met, and `commit` it.

    `target` gets a `.data` file beside it when the model is too large for one file. Leaving the `with` block without
    a commit leaves nothing; drafts of dead processes are swept.
    """

    output: Output
    target: Path
    _written: list[tuple[Path, Path]] = field(default_factory=list)

    def __enter__(self) -> Self:
        _sweep(self.target)
        return self

    def write(self) -> Peaks:
        """Raises InsufficientStorage when the disk is full, ConversionFailed when it cannot be written otherwise."""
        external = [tensor for tensor in walk.tensors(self.output.skeleton.model) if _is_external(tensor)]
        weights = sum(self.output.source(_key(tensor)).length for tensor in external)
        if self.output.skeleton.model.ByteSize() + weights < LARGEST_FILE:
            return self._file(self.target, _spliced(self.output))
        data = self.target.with_name(self.target.name + ".data")
        pieces = _laid_out(self.output, external, data.name)
        peaks = self._file(data, pieces)
        self._file(self.target, [self.output.skeleton.model.SerializeToString(deterministic=True)])
        return peaks

    def commit(self) -> None:
        """Gives the files their names, the graph last."""
        for temporary, target in self._written:
            temporary.replace(target)
        self._written.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary, _ in self._written:
            temporary.unlink(missing_ok=True)

    def _file(self, target: Path, pieces: list[Piece]) -> Peaks:
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        self._written.append((temporary, target))
        try:
            return write_pieces(temporary, pieces)
        except OSError as error:
            if error.errno in _FULL:
                raise InsufficientStorage(f"{target} cannot be written: the disk is full") from error
            raise ConversionFailed(f"{target} cannot be written: {error.strerror}") from error


def save(output: Output, target: Path) -> None:
    """Writes the model and commits it. Raises as `Draft.write` does."""
    with Draft(output, target) as draft:
        draft.write()
        draft.commit()


def _sweep(target: Path) -> None:
    """Removes what a process that was killed has left of the same target."""
    pattern = re.compile(rf"\.{re.escape(target.name)}(\.data)?\.(\d+)\.tmp")
    for path in target.parent.glob(f".{target.name}*.tmp") if target.parent.is_dir() else ():
        match = pattern.fullmatch(path.name)
        if match and not psutil.pid_exists(int(match[2])):
            path.unlink(missing_ok=True)


def _laid_out(output: Output, external: Iterable[TensorProto], location: str) -> list[Piece]:
    """The data file's pieces, aligned; tensors are pointed to their place. Equal sources are stored once."""
    pieces: list[Piece] = []
    offsets: dict[Source, int] = {}
    at = 0
    for tensor in external:
        source = output.source(_key(tensor))
        if source not in offsets:
            padding = -at % _ALIGNMENT
            pieces.extend((bytes(padding), source))
            offsets[source] = at + padding
            at += padding + source.length
        _point(tensor, location, offsets[source], source.length)
    return pieces


def _point(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def _key(tensor: TensorProto) -> str:
    return next(str(entry.value) for entry in tensor.external_data if entry.key == "location")


def _spliced(output: Output) -> list[Piece]:
    """The serialized model with each payload back in its place, as pieces."""
    body = output.skeleton.model.SerializeToString(deterministic=True)
    return _joined(_splice(output, "ModelProto", body, 0, len(body)))


def _splice(output: Output, kind: str, data: bytes, start: int, end: int) -> list[Piece]:
    if kind == "TensorProto":
        return _splice_tensor(output, data, start, end)
    children = _PATHS[kind]
    pieces: list[Piece] = []
    for number, _, begin, value, stop in fields(data, start, end):
        child = children.get(number)
        if child is None:
            pieces.append(data[begin:stop])
            continue
        inner = _splice(output, child, data, value, stop)
        pieces.append(length_prefixed(number, sum(map(length_of, inner))))
        pieces.extend(inner)
    return pieces


def _splice_tensor(output: Output, data: bytes, start: int, end: int) -> list[Piece]:
    tensor = TensorProto.FromString(data[start:end])
    if not _is_external(tensor):
        return [data[start:end]]
    kept = [
        data[begin:stop]
        for number, _, begin, _, stop in fields(data, start, end)
        if number not in (_DATA_LOCATION, _EXTERNAL_DATA, _RAW_DATA)
    ]
    source = output.source(_key(tensor))
    return [*kept, length_prefixed(_RAW_DATA, source.length), source]


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring bytes as one piece, so that each is one write."""
    joined: list[Piece] = []
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        joined.extend((b"".join(run), piece))
        run = []
    return [*joined, b"".join(run)]
