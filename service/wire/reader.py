"""Protobuf's wire format over a file: the fields of a message, in order, without their contents.

Only a small window of the file is in memory; a payload is a pair of offsets that whoever needs it reads, and everybody
else steps over.
"""

import os
from collections.abc import Iterator

from service.wire.limits import MAX_DEPTH, MAX_MESSAGES, MAX_NAME_BYTES
from service.wire.refusal import WireError, show
from service.wire.schema import FIXED32, FIXED64, LENGTH, VARINT, Field, Message

_WINDOW = 1 << 16
_LONGEST_VARINT = 10
_CONTINUED = bytes(range(128, 256))
_HIGHEST_FIELD = 2**29 - 1

Found = tuple[str, int, int, int]
"""A field's name and wire type; its value (varint) or the offset where its payload begins; the offset where it ends."""


class Reader:
    """Reads one file, whose size is `size` bytes. Every complaint names an offset in it."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self._descriptor = descriptor
        self._window = b""
        self._base = 0
        self._messages = 0

    def fields(self, message: Message, start: int, stop: int, depth: int) -> Iterator[Found]:
        """The known fields of a message that lies from `start` to `stop`.

        Faults: not-onnx (it cannot be read so, or is cut), ambiguous-protobuf (a field that may appear once appears
        twice, bytes that do not belong), too-deep, too-complex.
        """
        self._count(depth, start)
        seen = 0
        position = start
        while position < stop:
            at = position
            tag, position = self.varint(position, stop)
            wire = tag & 7
            value, position = self._value(message, tag, position, stop)
            field = message.fields.get(tag >> 3)
            if field is None:
                _check_foreign(message, tag, at)
                continue
            _check_wire(message, field, wire, at)
            if field.once & seen:
                raise _twice(message, field, at)
            seen |= field.once
            yield field.name, wire, value, position

    def varint(self, position: int, stop: int) -> tuple[int, int]:
        """The unsigned number at `position`, and where it ends."""
        at = position - self._base
        if not 0 <= at <= len(self._window) - _LONGEST_VARINT:
            self._window, self._base, at = os.pread(self._descriptor, _WINDOW, position), position, 0
        result = shift = 0
        for byte in self._window[at : at + min(_LONGEST_VARINT, stop - position)]:
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result, position
            shift += 7
        if position < stop:
            raise WireError(
                "not-onnx", f"Byte {position} is inside a number that has no end; this is not an ONNX model."
            )
        raise self._cut(position, stop)

    def payload(self, start: int, stop: int) -> bytes:
        """Bytes of a payload that is known to be small."""
        at = start - self._base
        if at >= 0 and stop - self._base <= len(self._window):
            return self._window[at : at + stop - start]
        return os.pread(self._descriptor, stop - start, start)

    def name(self, start: int, stop: int) -> bytes:
        """A name; its bytes need not be UTF-8. WireError: name-too-long."""
        self.check_name(start, stop)
        return self.payload(start, stop)

    def check_name(self, start: int, stop: int) -> None:
        if stop - start > MAX_NAME_BYTES:
            raise WireError(
                "name-too-long",
                f"The name at byte {start}, which begins with {show(self.payload(start, start + 40))}, has "
                f"{stop - start} bytes; at most {MAX_NAME_BYTES} are accepted. Rename it and export again.",
            )

    def varints(self, wire: int, value: int, stop: int) -> Iterator[int]:
        """The numbers of a repeated varint field, which is written one by one or packed."""
        if wire != LENGTH:
            yield value
            return
        position = value
        while position < stop:
            number, position = self.varint(position, stop)
            yield number

    def count(self, wire: int, value: int, stop: int, width: int | None) -> int:
        """How many numbers a repeated field brings, packed or not; `width` is their bytes, None for varints."""
        if wire != LENGTH:
            return 1
        if width is not None:
            return (stop - value) // width
        return sum(len(chunk.translate(None, _CONTINUED)) for chunk in self._chunks(value, stop))

    def _chunks(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop:
            chunk = os.pread(self._descriptor, min(_WINDOW, stop - start), start)
            yield chunk
            start += len(chunk)

    def _count(self, depth: int, at: int) -> None:
        self._messages += 1
        if depth > MAX_DEPTH:
            raise WireError(
                "too-deep",
                f"At byte {at} messages are nested {depth} deep; at most {MAX_DEPTH} levels are accepted, "
                "which is 33 graphs inside each other. Flatten the subgraphs.",
            )
        if self._messages > MAX_MESSAGES:
            raise WireError("too-complex", f"The file has more than {MAX_MESSAGES} parts, counted up to byte {at}.")

    def _value(self, message: Message, tag: int, position: int, stop: int) -> tuple[int, int]:
        """The value of a varint, else the offset of the payload; and the offset behind it."""
        match tag & 7:
            case 0:
                return self.varint(position, stop)
            case 2:
                length, position = self.varint(position, stop)
            case 1:
                length = 8
            case 5:
                length = 4
            case _:
                raise WireError("not-onnx", f"Byte {position - 1} begins no field of {message.name}; {_NOT_ONNX}")
        if length > stop - position:
            raise self._cut(position, stop, f"{message.name} needs {length} bytes from byte {position} on")
        return position, position + length

    def _cut(self, position: int, stop: int, what: str = "A number is not complete") -> WireError:
        if stop < self.size:
            return WireError("not-onnx", f"{what}, but what contains it ends at byte {stop}; {_NOT_ONNX}")
        return WireError(
            "not-onnx",
            f"{what}, but the file ends at byte {stop}: it is cut. Upload the whole file.",
            offset=position,
        )


def signed(value: int) -> int:
    """A varint as an int64."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


_NOT_ONNX = "this is not an ONNX model. Upload the `.onnx` file itself."


def _check_foreign(message: Message, tag: int, at: int) -> None:
    if not 0 < tag >> 3 <= _HIGHEST_FIELD:
        raise WireError(
            "ambiguous-protobuf" if message.closed and at else "not-onnx",
            f"Byte {at} begins no field of {message.name}, as field {tag >> 3} cannot exist; {_NOT_ONNX}",
        )
    if message.closed:
        raise WireError(
            "ambiguous-protobuf" if at else "not-onnx",
            f"Byte {at} begins field {tag >> 3}, which no {message.name} has: bytes that do not belong to the model. "
            "Upload the `.onnx` file alone.",
        )


def _check_wire(message: Message, field: Field, wire: int, at: int) -> None:
    if wire == field.wire or (wire == LENGTH and field.packable):
        return
    kinds = {VARINT: "a number", FIXED64: "8 bytes", LENGTH: "bytes with a length", FIXED32: "4 bytes"}
    raise WireError(
        "not-onnx", f"At byte {at}, {message.name}.{field.name} is {kinds[wire]}, not {kinds[field.wire]}; {_NOT_ONNX}"
    )


def _twice(message: Message, field: Field, at: int) -> WireError:
    return WireError(
        "ambiguous-protobuf",
        f"At byte {at}, {message.name}.{field.name} (or another member of its choice) is there a second time. Readers "
        "disagree on which one counts; if two files were joined, upload one.",
    )
