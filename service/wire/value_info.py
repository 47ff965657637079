"""Inputs and outputs: name, element type and shape as declared."""

from typing import NamedTuple

from service.wire.limits import MAX_DIM, MAX_RANK
from service.wire.reader import Reader, signed
from service.wire.refusal import WireError, show
from service.wire.schema import DIM, DTYPES, REFUSED_DTYPES, SHAPE, TENSOR_TYPE, TYPE, VALUE_INFO

_PLACEHOLDERS = ("", "?", "-1", "None")

Dim = int | str | None


class Value(NamedTuple):
    """`shape` None: unknown rank, or no tensor at all (`dtype` is then `sequence`, `optional`, …)."""

    name: bytes
    dtype: str
    shape: tuple[Dim, ...] | None


def read_value(reader: Reader, start: int, stop: int, depth: int) -> Value:
    """Faults: unsupported-dtype, tensor-too-large, invalid-graph (no type), name-too-long."""
    name = b""
    kind: tuple[str, int, int] | None = None
    for field, _, begin, end in reader.fields(VALUE_INFO, start, stop, depth):
        if field == "name":
            name = reader.name(begin, end)
        elif field == "type":
            kind = _read_type(reader, begin, end, depth + 1)
    if kind is None:
        raise WireError(
            "invalid-graph", f"The graph's input or output {show(name)} has no type. Export the model again."
        )
    if kind[0] != "tensor":
        return Value(name, kind[0], None)
    return _read_tensor_type(reader, name, kind[1], kind[2], depth + 2)


def _read_type(reader: Reader, start: int, stop: int, depth: int) -> tuple[str, int, int] | None:
    found = None
    for field, _, begin, end in reader.fields(TYPE, start, stop, depth):
        if field != "denotation":
            found = field, begin, end
    return found


def _read_tensor_type(reader: Reader, name: bytes, start: int, stop: int, depth: int) -> Value:
    dtype = 0
    shape = None
    for field, _, value, end in reader.fields(TENSOR_TYPE, start, stop, depth):
        if field == "elem_type":
            dtype = value
        else:
            shape = _read_shape(reader, name, value, end, depth + 1)
    if dtype not in DTYPES:
        what = REFUSED_DTYPES.get(dtype, f"{dtype}, which is unknown")
        raise WireError(
            "unsupported-dtype", f"The graph's input or output {show(name)} has type {what}. Export it as another."
        )
    return Value(name, DTYPES[dtype].name, shape)


def _read_shape(reader: Reader, name: bytes, start: int, stop: int, depth: int) -> tuple[Dim, ...]:
    dims: list[Dim] = []
    for _, _, begin, end in reader.fields(SHAPE, start, stop, depth):
        dims.append(_read_dim(reader, begin, end, depth + 1))
        dim = dims[-1]
        if len(dims) > MAX_RANK or (isinstance(dim, int) and dim > MAX_DIM):
            raise WireError(
                "tensor-too-large",
                f"The shape of {show(name)} has dimension {len(dims) - 1} = {dim}; at most {MAX_RANK} dimensions of at "
                f"most {MAX_DIM} are accepted.",
            )
    return tuple(dims)


def _read_dim(reader: Reader, start: int, stop: int, depth: int) -> Dim:
    """Exporters write unknown sizes in many ways: nothing, 0, -1, an empty symbol, `?`."""
    for field, _, value, end in reader.fields(DIM, start, stop, depth):
        if field == "dim_value":
            return signed(value) if signed(value) > 0 else None
        if field == "dim_param":
            symbol = reader.name(value, end).decode("utf-8", "replace")
            return symbol if symbol not in _PLACEHOLDERS else None
    return None
