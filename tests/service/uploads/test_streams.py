"""Uploads over real connections: cut ones leave nothing, large ones do not fill the memory."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import onnx
import psutil
import pytest

from service.store.local import LocalStore

MEBIBYTE = 1 << 20
LARGE = 200 * MEBIBYTE


def begin(port: int, head: str, body: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(f"POST /models HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n{head}\r\n".encode() + body)
    return connection


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def received(store: LocalStore) -> int:
    """Bytes of uploads that are not complete."""
    return sum(file.stat().st_size for file in store.tmp.iterdir())


CUT = {
    "raw": ("", bytes(3 * MEBIBYTE), 0),
    "form": (
        "Content-Type: multipart/form-data; boundary=b\r\n",
        b'--b\r\nContent-Disposition: form-data; name="data"; filename="w"\r\n\r\nwhole\r\n'
        b'--b\r\nContent-Disposition: form-data; name="model"; filename="m"\r\n\r\n' + bytes(2 * MEBIBYTE),
        1,
    ),
}


@pytest.mark.parametrize(("head", "body", "blobs"), CUT.values(), ids=CUT)
def test_a_cut_upload_leaves_nothing(server, store: LocalStore, head: str, body: bytes, blobs: int) -> None:
    with begin(server.port, head, body):
        assert eventually(lambda: len(list(store.list("blobs/"))) == blobs and received(store) >= MEBIBYTE)
    assert eventually(lambda: not [*store.tmp.iterdir(), *store.list("blobs/")])
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_the_same_upload_many_times_at_once_is_one_model(server, store: LocalStore, model_bytes: bytes) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda _: httpx.post(f"{server.url}/models", content=model_bytes, timeout=60), range(32))
        )
    assert sorted({answer.status_code for answer in answers}) == [200, 201]
    assert [answer.status_code for answer in answers].count(201) == 1
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len([*store.list("blobs/"), *store.tmp.iterdir()]) == 1


@pytest.fixture
def large_model(tmp_path: Path, external_model: tuple[bytes, bytes]) -> tuple[bytes, Path]:
    """A graph, and a file of 200 MiB that it refers to."""
    model = onnx.load_model_from_string(external_model[0])
    weight = model.graph.initializer[0]
    weight.dims[:] = [LARGE // 4]
    path = tmp_path / "w.bin"
    with path.open("wb") as file:
        for index in range(LARGE // MEBIBYTE):
            file.write(hashlib.sha256(b"%d" % index).digest() * (MEBIBYTE // 32))
    return model.SerializeToString(), path


def peak_growth(process: psutil.Process, work: Callable[[], None]) -> int:
    """How much the resident memory of `process` grows, at most, while `work` runs."""
    before = peak = process.memory_info().rss
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        peak = max(peak, process.memory_info().rss)
        time.sleep(0.01)
    thread.join()
    return peak - before


@pytest.mark.slow
def test_a_large_form_needs_little_memory(server, store: LocalStore, large_model: tuple[bytes, Path]) -> None:
    graph, data = large_model
    answers: list[httpx.Response] = []

    def upload() -> None:
        with data.open("rb") as file:
            parts = [("model", ("m.onnx", graph)), ("data", ("weights/w.bin", file))]
            answers.append(httpx.post(f"{server.url}/models", files=parts, timeout=120))

    assert peak_growth(server.process, upload) < 48 * MEBIBYTE
    assert answers[0].status_code == 201
    digest = answers[0].json()["external_data"]["weights/w.bin"]
    assert store.local_path(digest).stat().st_size == LARGE


@pytest.mark.slow
def test_a_large_raw_body_needs_little_memory(server, store: LocalStore) -> None:
    chunk = bytes(MEBIBYTE)

    def chunks() -> Iterator[bytes]:
        for _ in range(LARGE // MEBIBYTE):
            yield chunk

    answers: list[httpx.Response] = []
    growth = peak_growth(
        server.process, lambda: answers.append(httpx.post(f"{server.url}/models", content=chunks(), timeout=120))
    )
    assert growth < 48 * MEBIBYTE
    assert answers[0].json()["type"] == "urn:atoll:problem:not-onnx"
    assert [*store.list("blobs/"), *store.tmp.iterdir()] == []
