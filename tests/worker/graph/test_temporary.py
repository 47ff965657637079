"""Drafts: hidden until they are published, and swept once their writer is dead."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from worker.graph.temporary import Temporary, sweep


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model.onnx"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed_writer(target: Path) -> None:
    """A process that was killed over its draft."""
    script = (
        "import sys; from pathlib import Path; from worker.graph.temporary import Temporary\n"
        "draft = Temporary(Path(sys.argv[1])); draft.file.write(b'half'); draft.file.flush()\n"
        "print('ready', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        writer.send_signal(signal.SIGKILL)


def test_a_draft_has_the_name_only_once_it_is_published(target: Path) -> None:
    draft = Temporary(target)
    draft.file.write(b"whole")
    draft.file.flush()
    assert not target.exists()
    draft.publish()
    draft.close()
    assert (names(target.parent), target.read_bytes()) == (["model.onnx"], b"whole")


def test_a_draft_that_is_closed_unpublished_is_gone(target: Path) -> None:
    Temporary(target).close()
    assert names(target.parent) == []


def test_the_draft_of_a_live_writer_is_not_swept(target: Path) -> None:
    draft = Temporary(target)
    sweep(target)
    assert len(names(target.parent)) == 1
    draft.close()


def test_the_draft_of_a_killed_writer_is_swept(target: Path) -> None:
    killed_writer(target)
    assert len(names(target.parent)) == 1
    sweep(target)
    assert names(target.parent) == []


@pytest.mark.parametrize("name", [".model.onnx.tmp", ".model.onnx.12.tmp", "model.onnx.part", ".other.onnx.0a.tmp"])
def test_files_of_others_are_left_alone(target: Path, name: str) -> None:
    (target.parent / name).touch()
    sweep(target)
    assert names(target.parent) == [name]


def test_there_is_nothing_to_sweep_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    sweep(tmp_path / "none" / "model.onnx")
    assert names(tmp_path) == []
