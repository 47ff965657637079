"""Writes a model whose weights are still in other files: streamed, converted on the way, whole or not at all."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from service.errors import ConversionFailed, InsufficientStorage
from worker.graph import walk
from worker.graph.layout import Output, in_one_data_file, is_external, spliced
from worker.graph.stream import OnBytes, Peaks, Piece, unheard, write_pieces
from worker.graph.temporary import Temporary, sweep

__all__ = ["LARGEST_FILE", "Draft", "Output", "Watch", "data_file", "save"]

LARGEST_FILE = (2 << 30) - (1 << 20)
"""Protobuf refuses messages of 2 GiB; above this the weights go into a file of their own."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Watch:
    """Who follows the writing. `on_digest` is told the sha256 of each file that was committed; without it none is
    computed."""

    on_bytes: OnBytes = unheard
    on_digest: Callable[[Path, str], None] | None = None


_NOBODY = Watch()


@dataclass(slots=True)
class Draft:
    """A model under temporary names: `write` it, look at what the conversion met, and `commit` it.

    `target` gets a `.data` file beside it when the model is too large for one file. Leaving the `with` block without
    a commit leaves nothing; drafts of dead processes are swept.
    """

    target: Path
    watch: Watch = _NOBODY
    _files: list[Temporary] = field(default_factory=list)
    _digests: dict[Path, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        sweep(data_file(self.target))  # it may not be written this time
        return self

    def write(self, output: Output) -> Peaks:
        """Raises InsufficientStorage when the disk is full, ConversionFailed when it cannot be written otherwise."""
        external = [tensor for tensor in walk.tensors(output.skeleton.model) if is_external(tensor)]
        sources = [source for tensor in external if (source := output.source_of(tensor)) is not None]
        if output.skeleton.model.ByteSize() + sum(source.length for source in sources) < LARGEST_FILE:
            return self.write_file(self.target, spliced(output))
        data = data_file(self.target)
        peaks = self.write_file(data, in_one_data_file(output, external, data.name))
        self.write_file(self.target, [output.skeleton.model.SerializeToString(deterministic=True)])
        return peaks

    def write_file(self, target: Path, pieces: list[Piece]) -> Peaks:
        """One file of the draft. Raises as `write` does."""
        sweep(target)
        try:
            temporary = Temporary(target)
            self._files.append(temporary)
            written = write_pieces(
                temporary.file, pieces, hashed=self.watch.on_digest is not None, on_bytes=self.watch.on_bytes
            )
        except OSError as error:
            if error.errno in _FULL:
                raise InsufficientStorage(
                    f"{target} cannot be written: the disk is full. Nothing was left there; free some space"
                ) from error
            raise ConversionFailed(f"{target} cannot be written: {error.strerror}") from error
        if written.digest is not None:
            self._digests[target] = written.digest
        return written.peaks

    def commit(self) -> None:
        """Gives the files their names, the graph last: whoever finds the graph finds its data."""
        if len(self._files) > 1:
            self.target.unlink(missing_ok=True)
        for temporary in self._files:
            temporary.publish()
        for target, digest in self._digests.items():
            if self.watch.on_digest is not None:
                self.watch.on_digest(target, digest)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary in self._files:
            temporary.close()


def data_file(target: Path) -> Path:
    """Where the weights of a model go that is too large for one file."""
    return target.with_name(f"{target.name}.data")


def save(output: Output, target: Path) -> None:
    """Writes the model and commits it. Raises as `Draft.write` does."""
    with Draft(target) as draft:
        draft.write(output)
        draft.commit()
