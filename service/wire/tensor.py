"""A tensor in the file: what its shape says it needs, and what it has."""

from typing import NamedTuple

from service.wire.external import Slice, slice_of
from service.wire.limits import MAX_DIM, MAX_RANK
from service.wire.reader import Reader, signed
from service.wire.refusal import WireError, show
from service.wire.schema import DTYPES, ENTRY, REFUSED_DTYPES, SPARSE_TENSOR, TENSOR, Dtype

_WIDTHS = {"float_data": 4, "double_data": 8, "int32_data": None, "int64_data": None, "uint64_data": None}
_EXTERNAL = 1
_LONGEST_ENTRY = 4096


class Tensor(NamedTuple):
    """`nbytes` as its shape `dims` and its type say; `external` is where they are, if not in the graph's file."""

    name: bytes
    dtype: str
    elements: int
    nbytes: int
    external: Slice | None
    dims: tuple[int, ...]


class _Parts:
    """What a TensorProto has, before it is judged."""

    def __init__(self) -> None:
        self.name = b""
        self.dtype = 0
        self.dims: list[int] = []
        self.location = 0
        self.segmented = False
        self.raw: int | None = None
        self.typed: dict[str, int] = {}
        self.entries: list[tuple[bytes, bytes]] = []


def read_tensor(reader: Reader, start: int, stop: int, depth: int) -> Tensor:
    """Faults: unsupported-dtype, tensor-too-large, tensor-size-mismatch, external-data-…, name-too-long."""
    parts = _read_parts(reader, start, stop, depth)
    dtype = _dtype(parts)
    elements = _elements(parts)
    nbytes = (elements * dtype.bits + 7) // 8
    if parts.segmented:
        raise WireError(
            "invalid-graph", f"Tensor {show(parts.name)} is split in segments, which nothing reads. Export again."
        )
    if parts.location == _EXTERNAL or parts.entries:
        return Tensor(parts.name, dtype.name, elements, nbytes, _external(parts, nbytes), tuple(parts.dims))
    _check_inline(parts, dtype, elements, nbytes)
    return Tensor(parts.name, dtype.name, elements, nbytes, None, tuple(parts.dims))


def read_sparse(reader: Reader, start: int, stop: int, depth: int) -> list[Tensor]:
    """The values and the indices of a sparse tensor; the values carry its name."""
    return [
        read_tensor(reader, value, end, depth + 1)
        for name, _, value, end in reader.fields(SPARSE_TENSOR, start, stop, depth)
        if name in ("values", "indices")
    ]


def _read_parts(reader: Reader, start: int, stop: int, depth: int) -> _Parts:
    parts = _Parts()
    for field, wire, value, end in reader.fields(TENSOR, start, stop, depth):
        match field:
            case "dims":
                parts.dims += map(signed, reader.varints(wire, value, end))
                _check_rank(parts)
            case "data_type":
                parts.dtype = value
            case "name":
                parts.name = reader.name(value, end)
            case "raw_data":
                parts.raw = end - value
            case "data_location":
                parts.location = value
            case "external_data":
                parts.entries.append(_entry(reader, value, end, depth + 1))
            case "segment":
                parts.segmented = True
            case _ if field in _WIDTHS:
                parts.typed[field] = parts.typed.get(field, 0) + reader.count(wire, value, end, _WIDTHS[field])
    return parts


def _entry(reader: Reader, start: int, stop: int, depth: int) -> tuple[bytes, bytes]:
    key = value = b""
    for field, _, begin, end in reader.fields(ENTRY, start, stop, depth):
        if end - begin > _LONGEST_ENTRY:
            raise WireError(
                "external-data-invalid", f"The external-data entry at byte {begin} has {end - begin} bytes."
            )
        if field == "key":
            key = reader.payload(begin, end)
        else:
            value = reader.payload(begin, end)
    return key, value


def _check_rank(parts: _Parts) -> None:
    if len(parts.dims) > MAX_RANK:
        raise WireError("tensor-too-large", f"Tensor {show(parts.name)} has more than {MAX_RANK} dimensions.")


def _dtype(parts: _Parts) -> Dtype:
    if parts.dtype in DTYPES:
        return DTYPES[parts.dtype]
    known = REFUSED_DTYPES.get(parts.dtype)
    what = f"type {known}, which TensorRT does not have" if known else f"the unknown type {parts.dtype}"
    raise WireError(
        "unsupported-dtype", f"Tensor {show(parts.name)} has {what}. Take it out of the graph and export again."
    )


def _elements(parts: _Parts) -> int:
    total = 1
    for axis, dim in enumerate(parts.dims):
        if not 0 <= dim <= MAX_DIM:
            raise WireError(
                "tensor-too-large",
                f"Tensor {show(parts.name)}: dimension {axis} is {dim}; it has to be 0 to {MAX_DIM}.",
            )
        total *= dim
    return total


def _external(parts: _Parts, nbytes: int) -> Slice:
    if parts.location != _EXTERNAL:
        raise WireError(
            "external-data-invalid",
            f"Tensor {show(parts.name)} has external-data entries but says that its data are in the graph.",
        )
    if parts.raw is not None or parts.typed:
        raise _mismatch(parts, "has data in the graph and in an external file")
    return slice_of(parts.name, parts.entries, nbytes)


def _check_inline(parts: _Parts, dtype: Dtype, elements: int, nbytes: int) -> None:
    if parts.raw is not None and any(parts.typed.values()):
        raise _mismatch(parts, f"has both raw_data and {', '.join(parts.typed)}")
    if parts.raw is not None and parts.raw != nbytes:
        raise _mismatch(parts, f"needs {nbytes} bytes by its shape and type, but its raw_data has {parts.raw}")
    if parts.raw is not None:
        return
    if wrong := next((field for field, count in parts.typed.items() if count and field != dtype.typed), None):
        raise _mismatch(parts, f"has type {dtype.name} but its data are in {wrong}")
    entries = parts.typed.get(dtype.typed, 0)
    if entries != -(-elements // dtype.per_entry):
        raise _mismatch(parts, f"has {elements} elements by its shape, but {entries} entries in {dtype.typed}")


def _mismatch(parts: _Parts, what: str) -> WireError:
    return WireError("tensor-size-mismatch", f"Tensor {show(parts.name)} {what}. Export the model again.")
