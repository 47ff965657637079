"""What a local store does about broken disks and dead processes."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from service.canonical import digest_of
from service.errors import CorruptArtifact, InsufficientStorage, Unavailable
from service.store import durable
from service.store.local import LocalStore
from service.store.types import Blob

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from service.errors import InsufficientStorage, Unavailable
from service.store.local import LocalStore
store = LocalStore(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    with store.new_blob() as writer:
        for _ in range(64):
            writer.write(b"x" * 4096)
        writer.commit()
except Unavailable as error:
    print(error.detail)
"""
WRITE_AND_DIE = """
import os, sys
from pathlib import Path
from service.store.local import LocalStore
writer = LocalStore(Path(sys.argv[1])).new_blob()
writer.write(b"half")
os.abort()
"""


def add(store: LocalStore, data: bytes) -> Blob:
    with store.new_blob() as writer:
        writer.write(data)
        return writer.commit()


def file_of(store: LocalStore, blob: Blob) -> Path:
    return store.root / "blobs" / blob.digest[:2] / blob.digest


def damage(store: LocalStore, blob: Blob, data: bytes) -> None:
    file_of(store, blob).chmod(0o644)
    file_of(store, blob).write_bytes(data)


def temporary_files(store: LocalStore) -> list[Path]:
    return list(store.tmp.iterdir())


@pytest.mark.parametrize("damaged", [b"sound byteS", b"sound", b"", b"sound bytes and more"])
def test_a_damaged_blob_is_never_served_and_heals_by_an_upload(tmp_path: Path, damaged: bytes) -> None:
    blob = add(LocalStore(tmp_path), b"sound bytes")
    damage(LocalStore(tmp_path), blob, damaged)
    store = LocalStore(tmp_path)
    with pytest.raises(CorruptArtifact):
        store.open_blob(blob.digest)
    assert store.blob(blob.digest) is None
    assert [file.name.split(".")[0] for file in (tmp_path / "quarantine").iterdir()] == [blob.digest]
    assert add(store, b"sound bytes") == blob
    assert store.open_blob(blob.digest).read() == b"sound bytes"


def test_damage_that_nobody_has_read_yet_heals_by_an_upload(tmp_path: Path) -> None:
    blob = add(LocalStore(tmp_path), b"sound bytes")
    damage(LocalStore(tmp_path), blob, b"sound byteS")
    store = LocalStore(tmp_path)
    add(store, b"sound bytes")
    assert LocalStore(tmp_path).open_blob(blob.digest).read() == b"sound bytes"
    assert temporary_files(store) == []


def test_a_planted_empty_file_does_not_count_as_a_blob(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    blob = Blob(digest_of(b"x"), 1)
    file_of(store, blob).parent.mkdir(parents=True)
    file_of(store, blob).touch()
    assert store.blob(blob.digest) is None
    assert add(store, b"x") == blob
    assert store.blob(blob.digest) == blob


def test_a_blob_is_hashed_at_its_first_open_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = add(LocalStore(tmp_path), b"bytes")
    store = LocalStore(tmp_path)
    store.open_blob(blob.digest).close()
    monkeypatch.delattr("service.store.verified.hashlib.file_digest")
    assert store.open_blob(blob.digest).read() == b"bytes"


def test_blobs_have_one_name_and_are_read_only(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    stat = file_of(store, add(store, b"bytes")).stat()
    assert (stat.st_nlink, stat.st_mode & 0o777) == (1, 0o444)


def test_an_upload_takes_back_what_it_brought(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    blob = add(store, b"refused")
    assert store.take_back(blob)
    assert store.blob(blob.digest) is None
    assert not store.take_back(blob)


@pytest.mark.parametrize("another_process", [True, False])
def test_an_upload_does_not_take_back_what_others_stored_too(tmp_path: Path, another_process: bool) -> None:
    store = LocalStore(tmp_path)
    first = add(store, b"shared")
    second = add(LocalStore(tmp_path) if another_process else store, b"shared")
    assert not store.take_back(second)
    assert not store.take_back(first)
    assert store.open_blob(first.digest).read() == b"shared"


def test_a_blob_survives_all_who_take_theirs_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    stop = threading.Event()

    def refused() -> None:
        while not stop.is_set():
            store.take_back(add(store, b"shared"))

    threads = [threading.Thread(target=refused) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            blob = add(store, b"shared")
            kept = store.blob(blob.digest) == blob and store.open_blob(blob.digest).read() == b"shared"
            store.delete(f"blobs/{blob.digest}")
            assert kept
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_file_from_another_file_system_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path / "store")
    file = tmp_path / "engine"
    file.write_bytes(b"plan")
    link = os.link

    def refuse_foreign(source: Path, target: Path) -> None:
        if Path(source) == file:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        link(source, target)

    monkeypatch.setattr(os, "link", refuse_foreign)
    blob = store.add_file(file)
    assert store.open_blob(blob.digest).read() == b"plan"
    assert not file.exists()


@pytest.mark.parametrize(
    ("code", "error"),
    [(errno.ENOSPC, InsufficientStorage), (errno.EDQUOT, InsufficientStorage), (errno.EIO, Unavailable)],
)
def test_a_failing_fsync_fails_the_write_and_frees_the_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    store = LocalStore(tmp_path)

    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error):
        store.put("keys/k", b"x" * 10)
    with pytest.raises(error):
        add(store, b"bytes")
    monkeypatch.undo()
    assert temporary_files(store) == []
    assert store.get("keys/k") is None
    assert list(store.list("blobs/")) == []


def test_a_write_that_the_system_cuts_short_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, check=True)
    assert "cannot be written" in done.stdout
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_start_sweeps_what_the_dead_left_and_spares_the_living(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITE_AND_DIE, tmp_path], capture_output=True, check=False)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    with LocalStore(tmp_path).new_blob() as living:
        living.write(b"alive")
        assert len(temporary_files(LocalStore(tmp_path))) == 1
        blob = living.commit()
    assert LocalStore(tmp_path).open_blob(blob.digest).read() == b"alive"


def test_the_disk_has_the_bytes_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    order: list[str] = []
    for name in ("sync_file", "link_if_absent", "sync_folder"):
        original = getattr(durable, name)
        monkeypatch.setattr(
            durable, name, lambda *args, name=name, original=original: (order.append(name), original(*args))[1]
        )
    store.put("keys/k", b"x")
    assert order[:2] == ["sync_file", "link_if_absent"]
    assert order[-1] == "sync_folder"
