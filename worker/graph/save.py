"""Writes a model whose weights are still in other files: streamed, converted on the way, whole or not at all."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import TensorProto

from service.errors import InsufficientStorage
from worker.graph import walk
from worker.graph.payload import Payload
from worker.graph.skeleton import Skeleton, fields, length_prefixed
from worker.graph.weights import Conversion, payload_floats

LARGEST_FILE = (2 << 30) - (1 << 20)
"""Protobuf refuses messages of 2 GiB; above this the weights go into a file of their own."""

_ALIGNMENT = 4096
_RAW_DATA, _DATA_LOCATION, _EXTERNAL_DATA = 9, 14, 13
_PATHS: dict[str, dict[int, str]] = {
    "ModelProto": {7: "GraphProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {5: "TensorProto", 6: "GraphProto", 10: "TensorProto", 11: "GraphProto"},
}


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes that will be written from a payload, perhaps converted. `length` is what is written."""

    payload: Payload
    conversion: Conversion | None

    @property
    def length(self) -> int:
        return (
            self.payload.length
            if self.conversion is None
            else self.payload.length // 4 * self.conversion.half.numpy.itemsize
        )

    def chunks(self) -> Iterator[bytes]:
        if self.conversion is None:
            yield from self.payload.chunks()
            return
        for values in payload_floats(self.payload):
            yield np.ascontiguousarray(self.conversion.apply(values)).tobytes()


Piece = bytes | Source


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


def save(output: Output, target: Path) -> None:
    """Writes `target`, and `target` + `.data` when the model is too large for one file. Raises InsufficientStorage."""
    keys = [_key(tensor) for tensor in walk.tensors(output.skeleton.model) if _is_external(tensor)]
    total = output.skeleton.model.ByteSize() + sum(output.source(key).length for key in keys)
    try:
        if total < LARGEST_FILE:
            _write(target, _spliced(output))
        else:
            _save_beside(output, target)
    except OSError as error:
        raise InsufficientStorage(f"{target} cannot be written: {error.strerror}") from error


def _save_beside(output: Output, target: Path) -> None:
    data = target.with_name(target.name + ".data")
    sources: list[Piece] = []
    offsets: dict[Source, int] = {}
    at = 0
    for tensor in walk.tensors(output.skeleton.model):
        if not _is_external(tensor):
            continue
        source = output.source(_key(tensor))
        if source not in offsets:
            padding = -at % _ALIGNMENT
            sources.extend((bytes(padding), source))
            offsets[source] = at + padding
            at += padding + source.length
        _point(tensor, data.name, offsets[source], source.length)
    _write(data, sources)
    _write(target, [output.skeleton.model.SerializeToString(deterministic=True)])


def _point(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def _write(target: Path, pieces: list[Piece]) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            for piece in pieces:
                file.writelines([piece] if isinstance(piece, bytes) else piece.chunks())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def _key(tensor: TensorProto) -> str:
    return next(str(entry.value) for entry in tensor.external_data if entry.key == "location")


def _spliced(output: Output) -> list[Piece]:
    """The serialized model with each payload back in its place, as pieces."""
    body = output.skeleton.model.SerializeToString(deterministic=True)
    return _splice(output, "ModelProto", body, 0, len(body))


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
        pieces.append(length_prefixed(number, sum(map(_length, inner))))
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


def _length(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.length
