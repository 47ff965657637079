"""Bad input over the real service: each is a problem that says what and where, and nothing is half stored."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Running

pytestmark = pytest.mark.slow

TEXT = b"dummy\n"
CHANNELS = {"x": 64, "local_add_cond": 65}
PROFILE = {name: {key: [1, count, 16] for key in ("min", "opt", "max")} for name, count in CHANNELS.items()}


def blobs(server: Running) -> set[Path]:
    return {path for path in (server.data_dir / "store" / "blobs").rglob("*") if path.is_file()}


def post(server: Running, model: bytes, params: Any = None) -> httpx.Response:
    files = {"model": ("model.onnx", model), **({"params": (None, json.dumps(params))} if params else {})}
    return httpx.post(f"{server.url}/builds", files=files, timeout=60)


def problem(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["type"] == f"urn:atoll:problem:{slug}"
    assert body["detail"]
    assert answer.headers["X-Request-ID"]
    return body


@pytest.mark.parametrize(
    ("damage", "slug"),
    [
        (lambda model: b"", "not-onnx"),
        (lambda model: TEXT, "not-onnx"),
        (lambda model: model[: len(model) // 2], "not-onnx"),
        (lambda model: model + model, "ambiguous-protobuf"),
    ],
    ids=["empty", "text", "truncated", "twice"],
)
def test_what_is_no_model_is_refused_and_not_kept(server: Running, dit: Path, damage: Any, slug: str) -> None:
    before = blobs(server)
    problem(post(server, damage(dit.read_bytes())), 422, slug)
    assert blobs(server) == before


@pytest.mark.parametrize(
    ("params", "slug", "says"),
    [
        ({"moed": "rope"}, "invalid-request", "moed"),
        ({"mode": "best"}, "invalid-request", "mode"),
        ({"trunk": "fp8"}, "invalid-request", "trunk"),
        ({"arch": "hopper"}, "invalid-request", "arch"),
        ({"mode": "rope"}, "missing-profile", "local_add_cond"),
        ({"profiles": [{**PROFILE, "y": PROFILE["x"]}]}, "invalid-options", "y"),
        ({"profiles": [PROFILE], "arch": "sm_90"}, "no-worker", "sm_90"),
        ({"preset": "no-such"}, "invalid-options", "no-such"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused(
    server: Running, dit: Path, params: dict[str, Any], slug: str, says: str
) -> None:
    assert says in json.dumps(problem(post(server, dit.read_bytes(), params), 422, slug))
    assert httpx.get(f"{server.url}/builds").json()["items"] == []


def test_a_wrong_digest_is_refused(server: Running, dit: Path) -> None:
    wrong = {"Content-Digest": f"sha-256=:{'A' * 43}=:"}
    answer = httpx.post(f"{server.url}/models", content=dit.read_bytes(), headers=wrong, timeout=60)
    problem(answer, 422, "digest-mismatch")


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/builds/01J0000000000000000000000", "build-not-found"),
        (f"/models/{'0' * 64}", "model-not-found"),
        (f"/engines/{'0' * 64}", "engine-not-found"),
        ("/nothing", "not-found"),
    ],
)
def test_what_is_not_there_is_a_problem(server: Running, path: str, slug: str) -> None:
    problem(httpx.get(f"{server.url}{path}"), 404, slug)


def test_a_model_that_nobody_uploaded_cannot_be_built(server: Running) -> None:
    problem(httpx.post(f"{server.url}/builds", json={"model": "0" * 64}), 404, "model-not-found")
