"""Opens an ONNX file of any size without reading its weights.

The protobuf wire format is walked over the file, and the bytes of each large tensor are replaced by an
external-data entry whose location is a key into a table of payloads. What is left, the skeleton, is a small
`ModelProto` that can be copied, inferred and rewritten at no cost.

Wire format: https://protobuf.dev/programming-guides/encoding/. Field numbers: onnx.proto.
"""

import mmap
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from service.errors import NotOnnx
from worker.graph.payload import Payload

LARGE_BYTES = 1024
"""Tensors of fewer bytes stay in the skeleton: patterns look at their values."""

PAYLOAD_KEY = f"payload:{secrets.token_hex(8)}:"
"""Random, so that no location in an upload can pass for one of ours."""

_DATA_LOCATION = 14
_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_TENSOR = "TensorProto"
_CHILDREN: dict[str, dict[int, str]] = {
    "ModelProto": {7: "GraphProto", 25: "FunctionProto"},
    "GraphProto": {1: "NodeProto", 5: _TENSOR},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {5: _TENSOR, 6: "GraphProto", 10: _TENSOR, 11: "GraphProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
}
# Packed repeated floats are little-endian bytes, just as raw_data is: float_data, raw_data, double_data.
_BYTES_FIELDS = (4, 9, 10)
_DATA_FIELDS = frozenset({4, 5, 6, 7, 9, 10, 11})


@dataclass(slots=True)
class Skeleton:
    """A model without its large tensors, and where those lie."""

    model: onnx.ModelProto
    payloads: dict[str, Payload] = field(default_factory=dict)

    def payload(self, tensor: onnx.TensorProto) -> Payload | None:
        """Where the tensor's bytes lie; None when they are in the skeleton itself."""
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            return None
        return self.payloads[next(entry.value for entry in tensor.external_data if entry.key == "location")]

    def add_payload(self, payload: Payload) -> str:
        key = f"{PAYLOAD_KEY}{len(self.payloads)}"
        self.payloads[key] = payload
        return key


def open_skeleton(path: Path) -> Skeleton:
    """Raises NotOnnx when the file cannot be read as a `ModelProto`."""
    size = path.stat().st_size
    if size == 0:
        raise NotOnnx(f"{path.name} is empty")
    skeleton = Skeleton(onnx.ModelProto())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            body = b"".join(_Stripper(data, path, skeleton).strip("ModelProto", 0, size))
            skeleton.model.ParseFromString(body)
        except (ValueError, IndexError, RecursionError, DecodeError) as error:
            raise NotOnnx(f"{path.name} is not an ONNX model, or is cut off: {error}") from error
    if not skeleton.model.HasField("graph"):
        raise NotOnnx(f"{path.name} has no graph")
    return skeleton


def external_entries(location: str) -> bytes:
    """The wire bytes that make a TensorProto external: one external_data entry, and data_location = EXTERNAL."""
    tensor = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return bytes(tensor.SerializeToString())


def length_prefixed(number: int, length: int) -> bytes:
    """The tag and the length that stand before a field of `length` bytes."""
    return _varint_bytes(number << 3 | _LEN) + _varint_bytes(length)


@dataclass(frozen=True, slots=True)
class _Stripper:
    data: mmap.mmap
    path: Path
    skeleton: Skeleton

    def strip(self, kind: str, start: int, end: int) -> list[bytes]:
        """The message at [start, end) with large tensor bytes replaced, as pieces."""
        if kind == _TENSOR:
            return self._strip_tensor(start, end)
        children = _CHILDREN[kind]
        pieces: list[bytes] = []
        for number, wire, begin, value, stop in fields(self.data, start, end):
            child = children.get(number) if wire == _LEN and stop - value > LARGE_BYTES else None
            if child is None:
                pieces.append(self.data[begin:stop])
                continue
            inner = self.strip(child, value, stop)
            pieces.append(length_prefixed(number, sum(map(len, inner))))
            pieces.extend(inner)
        return pieces

    def _strip_tensor(self, start: int, end: int) -> list[bytes]:
        """Bytes that are replaced take the tensor's own `data_location` along: it may say DEFAULT.

        Data in several fields (a packed field may come in parts) has no one place in the file, so it stays.
        """
        kept: list[bytes] = []
        payload: Payload | None = None
        for number, wire, begin, value, stop in fields(self.data, start, end):
            if number in _DATA_FIELDS:
                if payload is not None or number not in _BYTES_FIELDS or wire != _LEN:
                    return [self.data[start:end]]
                payload = Payload(self.path, value, stop - value)
            elif number != _DATA_LOCATION:
                kept.append(self.data[begin:stop])
        if payload is None or payload.length <= LARGE_BYTES:
            return [self.data[start:end]]
        self._forget_pages()
        return [*kept, external_entries(self.skeleton.add_payload(payload))]

    def _forget_pages(self) -> None:
        """Reading a header maps the pages around it too, and mapped pages count as resident."""
        self.data.madvise(mmap.MADV_DONTNEED)


def fields(data: mmap.mmap | bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, start of the tag, start of the value, end of the value) of each field. Raises ValueError."""
    at = start
    while at < end:
        begin = at
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        value = at
        if wire == _LEN:
            length, value = _varint(data, at, end)
            at = value + length
        elif wire == _VARINT:
            _, at = _varint(data, at, end)
        elif wire in (_I64, _I32):
            at += 8 if wire == _I64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {begin}")
        if number == 0 or at > end:
            raise ValueError(f"field {number} at byte {begin} runs past byte {end}")
        yield number, wire, begin, value, at


def _varint(data: mmap.mmap | bytes, at: int, end: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise ValueError(f"cut off at byte {at}")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
    raise ValueError(f"a varint of more than ten bytes at byte {at}")


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
