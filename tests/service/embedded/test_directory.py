import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.embedded import directory as directory_module
from service.embedded.directory import DataDirectory
from service.errors import CommandError


def test_folders_are_made(tmp_path: Path) -> None:
    directory = DataDirectory.create(tmp_path / "deep" / "data")
    assert all(folder.is_dir() for folder in (directory.store, directory.valkey, directory.logs))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CommandError, match=r"cannot be the data directory.*--data-dir"):
        DataDirectory.create(tmp_path / "file")


def test_a_second_lock_names_the_holder(tmp_path: Path) -> None:
    directory = DataDirectory.create(tmp_path)
    directory.lock()
    with pytest.raises(CommandError, match=rf"pid {os.getpid()}\).*--data-dir"):
        directory.lock()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    directory = DataDirectory.create(tmp_path)
    directory.lock().release()
    directory.lock().release()


def test_a_child_that_inherited_the_lock_keeps_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "_LEFTOVERS_SECONDS", 0.2)
    directory = DataDirectory.create(tmp_path)
    source = (
        "import subprocess, sys; from pathlib import Path; from service.embedded.directory import DataDirectory;"
        "lock = DataDirectory.create(Path(sys.argv[1])).lock(); quiet = subprocess.DEVNULL;"
        "child = subprocess.Popen(['sleep', '60'], pass_fds=(lock.fd,), stdout=quiet, stderr=quiet);"
        "print(child.pid)"
    )
    done = subprocess.run([sys.executable, "-c", source, str(tmp_path)], capture_output=True, text=True, check=True)
    with pytest.raises(CommandError, match="earlier `atoll up`"):
        directory.lock()
    os.kill(int(done.stdout), 9)
    monkeypatch.setattr(directory_module, "_LEFTOVERS_SECONDS", 30)
    directory.lock().release()
