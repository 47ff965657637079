"""External data: which slice of which file a tensor is, and whether that can be true."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.wire.refusal import WireError, show

_KEYS = {b"location", b"offset", b"length", b"checksum"}
_LARGEST = 2**63 - 1
_LISTED = 20


class Slice(NamedTuple):
    """Where a tensor's bytes are. `length` None: as many as the tensor needs, `nbytes`."""

    tensor: bytes
    location: str
    offset: int
    length: int | None
    nbytes: int


def slice_of(tensor: bytes, entries: list[tuple[bytes, bytes]], nbytes: int) -> Slice:
    """Read a tensor's entries. Faults: external-data-invalid, -path, -range, tensor-size-mismatch."""
    keys = [key for key, _ in entries]
    if unknown := next((key for key in keys if key not in _KEYS), None):
        raise _invalid(tensor, f"has the unknown key {show(unknown)}")
    if len(set(keys)) < len(keys):
        raise _invalid(tensor, f"has a key twice (of {', '.join(sorted(key.decode() for key in keys))})")
    values = dict(entries)
    if b"location" not in values:
        raise _invalid(tensor, "has no location")
    location = _location(tensor, values[b"location"])
    offset = _number(tensor, "offset", values.get(b"offset", b"0"))
    length = _number(tensor, "length", values[b"length"]) if b"length" in values else None
    if length is not None and length != nbytes:
        raise WireError(
            "tensor-size-mismatch",
            f"Tensor {show(tensor)} needs {nbytes} bytes by its shape and type, but its external data has {length}. "
            "Export the model again.",
        )
    return Slice(tensor, location, offset, length, nbytes)


def check_slices(slices: Iterable[Slice], sizes: Mapping[str, int]) -> None:
    """Every location has a file that is long enough, and every file a tensor. `sizes`: location to bytes."""
    used: set[str] = set()
    missing: dict[str, None] = {}
    for piece in slices:
        used.add(piece.location)
        if piece.location not in sizes:
            missing[piece.location] = None
        elif piece.offset + piece.nbytes > sizes[piece.location]:
            raise _outside(piece, sizes[piece.location])
    if missing:
        raise _missing(list(missing))
    if unused := sorted(sizes.keys() - used):
        raise WireError(
            "external-data-invalid",
            f"The graph refers to no file named {unused[0]!r}. Leave it out, or send it under the name that the graph "
            f"uses ({', '.join(map(repr, sorted(used)[:_LISTED])) or 'it uses no external data'}).",
            unused=unused[:_LISTED],
        )


def distinct_bytes(slices: Iterable[Slice]) -> int:
    """Bytes of all slices together; where they overlap, counted once."""
    total = 0
    place, end = "", 0
    for piece in sorted(slices, key=lambda piece: (piece.location, piece.offset)):
        if piece.location != place:
            place, end = piece.location, 0
        stop = piece.offset + piece.nbytes
        total += max(0, stop - max(end, piece.offset))
        end = max(end, stop)
    return total


def _location(tensor: bytes, raw: bytes) -> str:
    try:
        location = raw.decode()
    except UnicodeDecodeError:
        raise _bad_path(tensor, raw) from None
    parts = location.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in location or "\0" in location or location[1:2] == ":":
        raise _bad_path(tensor, raw)
    return location


def _number(tensor: bytes, key: str, raw: bytes) -> int:
    if not raw.isdigit() or len(raw) > 19 or int(raw) > _LARGEST:
        raise WireError(
            "external-data-range",
            f"Tensor {show(tensor)}: the {key} of its external data is {show(raw)}, not a whole number of bytes.",
        )
    return int(raw)


def _invalid(tensor: bytes, what: str) -> WireError:
    return WireError(
        "external-data-invalid", f"Tensor {show(tensor)}: its external data {what}. Export the model again."
    )


def _bad_path(tensor: bytes, raw: bytes) -> WireError:
    return WireError(
        "external-data-path",
        f"Tensor {show(tensor)}: the location {show(raw)} of its external data is not a plain relative path. "
        "Use a file name beside the graph.",
    )


def _outside(piece: Slice, size: int) -> WireError:
    return WireError(
        "external-data-range",
        f"Tensor {show(piece.tensor)} needs bytes {piece.offset} to {piece.offset + piece.nbytes} of "
        f"{piece.location!r}, which has {size}. Upload the file that belongs to this graph.",
    )


def _missing(missing: list[str]) -> WireError:
    names = ", ".join(map(repr, missing[:_LISTED]))
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    return WireError(
        "external-data-missing",
        f"The graph refers to external data that was not sent: {names}{more}. Send each as a part `data` whose "
        "filename is the location.",
        missing=missing[:_LISTED],
    )
