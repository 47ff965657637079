"""What an uploaded sample holds, by its first bytes: an `.npz` archive, or else one ONNX tensor."""

from pathlib import Path

from service.errors import InvalidSample
from service.samples.npz import read_npz
from service.samples.types import Sample, SampleTensor
from service.store.types import Blob
from service.wire.reader import Reader
from service.wire.refusal import WireError
from service.wire.tensor import read_tensor

_ZIP = b"PK"


def read_sample(path: Path, blob: Blob) -> Sample:
    """The sample in the file at `path`. Raises InvalidSample."""
    with path.open("rb") as file:
        archive = file.read(2) == _ZIP
    tensors = read_npz(path) if archive else (_read_pb(path),)
    return Sample(digest=blob.digest, size=blob.size, format="npz" if archive else "pb", tensors=tensors)


def _read_pb(path: Path) -> SampleTensor:
    with path.open("rb") as file:
        size = path.stat().st_size
        try:
            tensor = read_tensor(Reader(file.fileno(), size), 0, size, 0)
        except WireError as refused:
            raise InvalidSample(
                f"The file is neither an .npz archive nor an ONNX tensor with its values ({refused.slug})."
            ) from None
    if tensor.external is not None:
        raise InvalidSample("The tensor's values are in another file; save it with its values.")
    if not tensor.name:
        raise InvalidSample("The tensor has no name, so nobody knows which input it is for; name it after the input.")
    return SampleTensor(name=tensor.name.decode("utf-8", "replace"), dtype=tensor.dtype, shape=tensor.dims)
