from pathlib import Path

import pytest

from worker.engine.inspect import count_mark


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 4, 5, 7, 64])
@pytest.mark.parametrize(
    ("content", "count"),
    [(b"", 0), (b"mar", 0), (b"mark", 1), (b"..mark.markmark", 3), (b"mmarkmarmark", 2), (b"mark" * 5, 5)],
)
def test_marks_are_counted_across_the_borders_of_chunks(
    tmp_path: Path, content: bytes, count: int, chunk_bytes: int
) -> None:
    path = tmp_path / "engine"
    path.write_bytes(content)
    assert count_mark(path, b"mark", chunk_bytes) == count
