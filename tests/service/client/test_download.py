import hashlib
import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from service.client import AtollClient
from service.client import transport as transport_module
from service.errors import DigestMismatch, EngineNotFound, ProblemError, Unavailable
from tests.service.client.answers import Respond, answer, answer_problem, hang_up
from tests.service.client.conftest import ScriptedServer

ENGINE = os.urandom(3 << 20)
DIGEST = hashlib.sha256(ENGINE).hexdigest()
HALF = len(ENGINE) // 2


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_FIRST_PAUSE", 0.001)


def offset_of(header: str) -> int:
    return int(header.removeprefix("bytes=").removesuffix("-"))


def rest_of_engine(request: BaseHTTPRequestHandler) -> None:
    offset = offset_of(request.headers["Range"])
    content_range = f"bytes {offset}-{len(ENGINE) - 1}/{len(ENGINE)}"
    answer(206, ENGINE[offset:], Content_Range=content_range)(request)


def test_the_file_is_what_the_digest_says(scripted_server: ScriptedServer, tmp_path: Path) -> None:
    scripted_server.steps = [answer(200, ENGINE)]
    assert AtollClient(scripted_server.url).download(DIGEST, tmp_path / "engine") == len(ENGINE)
    assert (tmp_path / "engine").read_bytes() == ENGINE


def test_a_broken_download_goes_on_where_it_broke(scripted_server: ScriptedServer, tmp_path: Path) -> None:
    cut = answer(200, ENGINE[:HALF], announced=len(ENGINE))
    scripted_server.steps = [cut, hang_up, rest_of_engine]
    AtollClient(scripted_server.url).download(DIGEST, tmp_path / "engine")
    assert (tmp_path / "engine").read_bytes() == ENGINE
    asked = scripted_server.requests[-1][2]
    assert 0 < offset_of(asked["Range"]) <= HALF
    assert asked["If-Range"] == f'"{DIGEST}"'


def test_a_server_that_sends_all_again_is_heeded(scripted_server: ScriptedServer, tmp_path: Path) -> None:
    scripted_server.steps = [answer(200, ENGINE[:HALF], announced=len(ENGINE)), answer(200, ENGINE)]
    AtollClient(scripted_server.url).download(DIGEST, tmp_path / "engine")
    assert (tmp_path / "engine").read_bytes() == ENGINE


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([answer(200, ENGINE[:-1] + b"?")], DigestMismatch),
        ([answer_problem(EngineNotFound("collected"))], ProblemError),
        ([hang_up] * 5, Unavailable),
    ],
)
def test_what_fails_leaves_the_old_file_and_nothing_else(
    scripted_server: ScriptedServer, tmp_path: Path, steps: list[Respond], error: type[Exception]
) -> None:
    (tmp_path / "engine").write_bytes(b"old")
    scripted_server.steps = list(steps)
    with pytest.raises(error):
        AtollClient(scripted_server.url).download(DIGEST, tmp_path / "engine")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
