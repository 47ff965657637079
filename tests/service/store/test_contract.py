"""What every object store must do; another implementation is one more parameter of the fixture."""

import hashlib
import threading
from pathlib import Path

import pytest

from service.canonical import digest_of
from service.errors import BlobNotFound, DigestMismatch
from service.store.local import LocalStore
from service.store.types import Blob, ObjectStore

ABSENT = "0" * 64


@pytest.fixture(params=[LocalStore])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return request.param(tmp_path / "store")


def add(store: ObjectStore, *chunks: bytes) -> Blob:
    with store.new_blob() as writer:
        for chunk in chunks:
            writer.write(chunk)
        return writer.commit()


def test_the_first_fact_at_a_path_stays(store: ObjectStore) -> None:
    assert store.put("keys/a", b"first")
    assert not store.put("keys/a", b"second")
    assert store.get("keys/a") == b"first"
    assert store.exists("keys/a")


def test_one_of_many_racing_writers_wins(store: ObjectStore) -> None:
    barrier = threading.Barrier(8)
    won: list[bytes] = []

    def claim(name: bytes) -> None:
        barrier.wait()
        if store.put("builds/b/attempts/1", name):
            won.append(name)

    threads = [threading.Thread(target=claim, args=(b"%d" % n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.get("builds/b/attempts/1") == won[0]


def test_what_was_never_stored_is_absent(store: ObjectStore) -> None:
    assert store.get("keys/none") is None
    assert not store.exists("keys/none")
    assert not store.delete("keys/none")
    assert list(store.list("keys/")) == []
    assert store.blob(ABSENT) is None
    with pytest.raises(BlobNotFound):
        store.open_blob(ABSENT)
    with pytest.raises(BlobNotFound):
        store.local_path(ABSENT)


def test_a_deleted_fact_may_be_stored_again(store: ObjectStore) -> None:
    store.put("pending/x", b"1")
    assert store.delete("pending/x")
    assert not store.exists("pending/x")
    assert store.put("pending/x", b"2")


def test_a_listing_names_all_facts_below_a_folder(store: ObjectStore) -> None:
    for path in ("builds/a/accepted", "builds/a/attempts/1", "builds/b/accepted", "keys/k"):
        store.put(path, b"x")
    assert set(store.list("builds/")) == {"builds/a/accepted", "builds/a/attempts/1", "builds/b/accepted"}
    assert set(store.list("builds/a/attempts/")) == {"builds/a/attempts/1"}


def test_a_blob_is_named_by_its_bytes(store: ObjectStore) -> None:
    blob = add(store, b"hello ", b"world")
    assert blob == Blob(digest_of(b"hello world"), 11)
    assert store.blob(blob.digest) == blob
    assert store.open_blob(blob.digest).read() == b"hello world"
    assert store.local_path(blob.digest).read_bytes() == b"hello world"
    assert list(store.list("blobs/")) == [f"blobs/{blob.digest}"]


def test_the_same_bytes_again_are_the_same_blob(store: ObjectStore) -> None:
    assert add(store, b"twice") == add(store, b"tw", b"ice")


def test_the_empty_blob_is_a_blob(store: ObjectStore) -> None:
    blob = add(store)
    assert blob.size == 0
    assert store.open_blob(blob.digest).read() == b""


def test_bytes_that_are_not_committed_leave_nothing(store: ObjectStore) -> None:
    with store.new_blob() as writer:
        writer.write(b"half")
    assert list(store.list("blobs/")) == []


def test_bytes_with_another_digest_are_refused_and_leave_nothing(store: ObjectStore) -> None:
    with store.new_blob() as writer:
        writer.write(b"bytes")
        with pytest.raises(DigestMismatch) as caught:
            writer.commit(ABSENT)
    assert caught.value.extensions == {"expected": ABSENT, "actual": digest_of(b"bytes")}
    assert list(store.list("blobs/")) == []


@pytest.mark.parametrize("known", [True, False])
def test_a_file_is_taken_over_as_a_blob(store: ObjectStore, tmp_path: Path, known: bool) -> None:
    file = tmp_path / "engine"
    file.write_bytes(b"plan")
    digest = hashlib.sha256(b"plan").hexdigest()
    assert store.add_file(file, digest if known else None) == Blob(digest, 4)
    assert not file.exists()
    assert store.open_blob(digest).read() == b"plan"


def test_a_deleted_blob_may_be_uploaded_again(store: ObjectStore) -> None:
    blob = add(store, b"again")
    assert store.delete(f"blobs/{blob.digest}")
    assert store.blob(blob.digest) is None
    assert add(store, b"again") == blob


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "keys/../../x", "keys//x", "keys/./x", "a\0b", "a\\b"])
def test_a_path_that_leaves_the_store_is_refused(store: ObjectStore, path: str) -> None:
    for call in (store.get, store.exists, store.delete, lambda path: store.put(path, b"")):
        with pytest.raises(ValueError, match="not a path"):
            call(path)


def test_a_blob_cannot_be_stored_as_a_fact(store: ObjectStore) -> None:
    with pytest.raises(ValueError, match="named by its bytes"):
        store.put(f"blobs/{ABSENT}", b"no")


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_only_a_digest_names_a_blob(store: ObjectStore, digest: str) -> None:
    with pytest.raises(ValueError, match="not a sha256"):
        store.blob(digest)
