"""External data on this disk: what a graph refers to is found, and nothing outside its folder."""

from pathlib import Path

import pytest

from service.wire.beside import FilesBeside


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    graph = tmp_path / "model" / "net.onnx"
    (graph.parent / "weights").mkdir(parents=True)
    (graph.parent / "weights" / "w.bin").write_bytes(bytes(10))
    (graph.parent / "other.bin").write_bytes(bytes(5))
    (tmp_path / "secret").write_bytes(bytes(3))
    (graph.parent / "link").symlink_to(tmp_path / "secret")
    return graph


def test_only_what_was_asked_for_is_there(graph: Path) -> None:
    beside = FilesBeside(graph)
    assert "weights/w.bin" in beside
    assert dict(beside) == {"weights/w.bin": 10}


@pytest.mark.parametrize("location", ["none", "weights", "../secret", "link"])
def test_what_is_not_a_file_in_the_folder_is_missing(graph: Path, location: str) -> None:
    assert location not in FilesBeside(graph)
