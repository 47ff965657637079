"""The report over HTTP: one address, JSON for programs and a harmless page for people."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from service.http.report import report_response
from service.store.local import LocalStore

REPORT, PAGE = b'{"islands": []}', b"<!DOCTYPE html><title>report</title>"


def add(store: LocalStore, data: bytes) -> str:
    with store.new_blob() as writer:
        writer.write(data)
        return writer.commit().digest


def client(root: Path, *, with_page: bool = True) -> TestClient:
    store = LocalStore(root)
    report, page = add(store, REPORT), add(store, PAGE)

    def answer(request: Request) -> Response:
        return report_response(request, store, report, page if with_page else None)

    return TestClient(Starlette(routes=[Route("/report", answer)]))


@pytest.mark.parametrize(
    ("accept", "body", "media_type"),
    [("text/html", PAGE, "text/html; charset=utf-8"), ("*/*", REPORT, "application/json")],
)
def test_accept_decides(tmp_path: Path, accept: str, body: bytes, media_type: str) -> None:
    response = client(tmp_path).get("/report", headers={"Accept": accept})
    assert (response.content, response.headers["content-type"]) == (body, media_type)
    assert response.headers["vary"] == "Accept"


def test_the_page_may_run_and_load_nothing(tmp_path: Path) -> None:
    policy = client(tmp_path).get("/report", headers={"Accept": "text/html"}).headers["content-security-policy"]
    assert {"default-src 'none'", "sandbox", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "script-src" not in policy


def test_the_two_have_tags_of_their_own(tmp_path: Path) -> None:
    served = client(tmp_path)
    page = served.get("/report", headers={"Accept": "text/html"})
    again = {"If-None-Match": page.headers["etag"]}
    assert served.get("/report", headers={"Accept": "text/html", **again}).status_code == 304
    assert served.get("/report", headers={"Accept": "application/json", **again}).status_code == 200


def test_without_a_page_json_is_better_than_nothing(tmp_path: Path) -> None:
    response = client(tmp_path, with_page=False).get("/report", headers={"Accept": "text/html"})
    assert response.json() == {"islands": []}
