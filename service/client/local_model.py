"""A model on this machine, as it has to be sent: its files, their digests, and the id that the server will give it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from service.errors import CommandError
from service.models.types import model_id
from service.wire.beside import FilesBeside
from service.wire.file import scan_file
from service.wire.types import ModelScan


@dataclass(frozen=True, slots=True)
class LocalModel:
    """An ONNX file and its external data (location in the graph -> file)."""

    path: Path
    external: dict[str, Path]
    scan: ModelScan
    id: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """Scan and hash the files. Raises CommandError when one cannot be read, a kind of InvalidModel if it is bad."""
        _check_readable(path)
        scan = scan_file(path, FilesBeside(path))
        external = {location: path.parent / location for location in sorted({ref.location for ref in scan.external})}
        digests = {location: _digest(file) for location, file in external.items()}
        return cls(path, external, scan, model_id(_digest(path), digests))

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.stat().st_size for file in (self.path, *self.external.values()))


def _check_readable(path: Path) -> None:
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    if not os.access(path, os.R_OK):
        raise CommandError(f"{path}: this file may not be read")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
