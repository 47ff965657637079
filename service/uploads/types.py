"""What an upload brought: blobs, and the names that the client gave them."""

from dataclasses import dataclass

from service.store.types import Blob


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A part of a form whose bytes are stored. `filename` is checked: relative, printable, inside its folder."""

    blob: Blob
    filename: str


@dataclass(frozen=True, slots=True)
class ReceivedForm:
    """A whole form: the part `model`, the parts `data`, and the raw bytes of the part `params`."""

    model: ReceivedFile | None = None
    data: tuple[ReceivedFile, ...] = ()
    params: bytes | None = None

    @property
    def blobs(self) -> tuple[Blob, ...]:
        files = (self.model, *self.data) if self.model else self.data
        return tuple(file.blob for file in files)
