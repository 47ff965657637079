"""What the files of a converted model are made of: the serialized graph, and the weights in their places."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from onnx import TensorProto

from worker.graph.chunks import Source
from worker.graph.skeleton import Skeleton, fields, length_prefixed
from worker.graph.stream import Piece, length_of
from worker.graph.weights import Conversion

_ALIGNMENT = 4096
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
        return self.source(payload_key(tensor)) if is_external(tensor) else None

    def source(self, key: str) -> Source:
        return Source(self.skeleton.payloads[key], self.conversions.get(key))


def in_one_data_file(output: Output, external: Iterable[TensorProto], location: str) -> list[Piece]:
    """The data file's pieces, aligned; tensors are pointed to their place. Equal sources are stored once."""
    pieces: list[Piece] = []
    offsets: dict[Source, int] = {}
    at = 0
    for tensor in external:
        source = output.source(payload_key(tensor))
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


def is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def payload_key(tensor: TensorProto) -> str:
    return next(str(entry.value) for entry in tensor.external_data if entry.key == "location")


def spliced(output: Output) -> list[Piece]:
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
    if not is_external(tensor):
        return [data[start:end]]
    kept = [
        data[begin:stop]
        for number, _, begin, _, stop in fields(data, start, end)
        if number not in (_DATA_LOCATION, _EXTERNAL_DATA, _RAW_DATA)
    ]
    source = output.source(payload_key(tensor))
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
