"""External data on this disk, as a graph refers to it."""

from collections.abc import Iterator, Mapping
from pathlib import Path


class FilesBeside(Mapping[str, int]):
    """Sizes in bytes by location of the files below a graph's folder: only those that were asked for.

    `scan_file` takes it as `external`: what the graph does not refer to is not looked at, and so not too much.
    """

    def __init__(self, graph: Path) -> None:
        self._folder = graph.parent.resolve()
        self._found: dict[str, int] = {}

    def __getitem__(self, location: str) -> int:
        file = (self._folder / location).resolve()
        if not file.is_relative_to(self._folder) or not file.is_file():
            raise KeyError(location)
        return self._found.setdefault(location, file.stat().st_size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
