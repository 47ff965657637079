"""Models over HTTP: uploads of every kind, and what is left of those that are refused."""

import base64
import errno
import hashlib
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from service.canonical import digest_of
from service.main import create_app
from service.models.types import model_id
from service.settings import Settings
from service.store.local import LocalStore

OCTETS = {"Content-Type": "application/octet-stream"}


def b64(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def slug(response: httpx.Response) -> str:
    assert response.headers["content-type"] == "application/problem+json"
    return response.json()["type"].removeprefix("urn:atoll:problem:")


def nothing_is_stored(store: LocalStore) -> bool:
    return not [*store.list("blobs/"), *store.list("models/"), *Path(store.tmp).iterdir()]


def test_a_raw_upload_is_a_model(api: httpx.Client, model_bytes: bytes) -> None:
    response = api.post("/models?name=net.onnx", content=model_bytes, headers=OCTETS)
    model = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/models/{model['id']}"
    assert (model["id"], model["name"], model["size"]) == (digest_of(model_bytes), "net", len(model_bytes))
    assert model["scan"]["inputs"] == [{"name": "x", "dtype": "float", "shape": ["N", 4]}]


def test_the_same_upload_again_is_known(api: httpx.Client, model_bytes: bytes) -> None:
    first = api.post("/models?name=a", content=model_bytes)
    again = api.post("/models?name=b", content=model_bytes)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()


def test_a_form_brings_external_data(api: httpx.Client, external_model: tuple[bytes, bytes]) -> None:
    graph, data = external_model
    response = api.post("/models", files=[("model", ("net.onnx", graph)), ("data", ("weights/w.bin", data))])
    assert response.status_code == 201, response.text
    external = {"weights/w.bin": digest_of(data)}
    assert response.json()["id"] == model_id(digest_of(graph), external)
    assert response.json()["external_data"] == external
    assert response.json()["size"] == len(graph) + len(data)


def test_a_model_is_assembled_from_blobs(api, store: LocalStore, external_model: tuple[bytes, bytes]) -> None:
    graph, data = external_model
    parts = {"graph": digest_of(graph), "external_data": {"weights/w.bin": digest_of(data)}}
    missing = api.post("/models", json=parts)
    assert (missing.status_code, slug(missing)) == (422, "invalid-request")
    assert [error["where"] for error in missing.json()["errors"]] == ["graph", "external_data.weights/w.bin"]
    for blob in external_model:
        with store.new_blob() as writer:
            writer.write(blob)
            writer.commit()
    assert api.post("/models", json=parts).status_code == 201
    assert api.post("/models", json=parts).status_code == 200


@pytest.mark.parametrize("header", ["Content-Digest", "Repr-Digest"])
def test_a_declared_digest_is_verified(api, store, model_bytes: bytes, header: str) -> None:
    wrong = api.post("/models", content=model_bytes, headers={header: f"sha-256=:{b64(b'other')}:"})
    assert (wrong.status_code, slug(wrong)) == (422, "digest-mismatch")
    assert nothing_is_stored(store)
    right = api.post("/models", content=model_bytes, headers={header: f"md5=:AAAA:, sha-256=:{b64(model_bytes)}:"})
    assert right.status_code == 201


@pytest.mark.parametrize("value", ["", "sha-256=abc", "sha-256=:!:", "sha-256=:AAAA:", "sha-256:AAAA", "x"])
def test_a_malformed_digest_is_refused(api, store, model_bytes: bytes, value: str) -> None:
    response = api.post("/models", content=model_bytes, headers={"Content-Digest": value})
    assert (response.status_code, slug(response)) == (400, "bad-digest")
    assert nothing_is_stored(store)


REFUSED = {
    "empty": (b"", {}, 422, "not-onnx"),
    "text": (b"dummy\n", {}, 422, "not-onnx"),
    "gzip": (b"x", {"Content-Encoding": "gzip"}, 415, "unsupported-media-type"),
    "media type": (b"x", {"Content-Type": "text/html"}, 415, "unsupported-media-type"),
    "form without boundary": (b"x", {"Content-Type": "multipart/form-data"}, 400, "bad-request"),
    "no form": (b"hello", {"Content-Type": "multipart/form-data; boundary=b"}, 400, "bad-request"),
    "bad JSON": (b"{", {"Content-Type": "application/json"}, 400, "malformed-json"),
    "JSON without graph": (b"{}", {"Content-Type": "application/json"}, 422, "invalid-request"),
    "unknown member": (b'{"graph": "x", "y": 1}', {"Content-Type": "application/json"}, 422, "invalid-request"),
}


@pytest.mark.parametrize(("body", "headers", "status", "kind"), REFUSED.values(), ids=REFUSED)
def test_a_refused_upload_leaves_nothing(api, store, body: bytes, headers, status: int, kind: str) -> None:
    response = api.post("/models", content=body, headers=headers)
    assert (response.status_code, slug(response)) == (status, kind)
    assert response.json()["detail"]
    assert nothing_is_stored(store)


def test_a_refused_model_leaves_what_was_there_before(api, store: LocalStore) -> None:
    with store.new_blob() as writer:
        writer.write(b"dummy\n")
        blob = writer.commit()
    assert api.post("/models", content=b"dummy\n").status_code == 422
    assert store.blob(blob.digest) == blob


def test_missing_external_data_are_named_and_nothing_stays(api, store, external_model: tuple[bytes, bytes]) -> None:
    graph, data = external_model
    alone = api.post("/models", content=graph)
    misnamed = api.post("/models", files=[("model", ("m", graph)), ("data", ("w.bin", data))])
    for response in (alone, misnamed):
        assert (response.status_code, slug(response)) == (422, "external-data-missing")
        assert response.json()["missing"] == ["weights/w.bin"]
    assert nothing_is_stored(store)


@pytest.mark.parametrize("twin", ["Weights/w.bin", "weights/W.bin"])
def test_locations_that_differ_in_case_only_are_refused(api, store, external_model, twin: str) -> None:
    graph, data = external_model
    parts = [("model", ("m", graph)), ("data", ("weights/w.bin", data)), ("data", (twin, b"x"))]
    response = api.post("/models", files=parts)
    assert (response.status_code, slug(response)) == (422, "external-data-path")
    assert nothing_is_stored(store)


def test_a_body_over_the_limit_is_refused(settings: Settings, client, store, model_bytes: bytes) -> None:
    small = settings.model_copy(update={"max_model_bytes": 10, "max_json_bytes": 10})
    with TestClient(create_app(small)) as api:
        announced = api.post("/models", content=model_bytes)
        chunked = api.post("/models", content=iter([model_bytes]))
        form = api.post("/models", files={"model": model_bytes})
        document = api.post("/models", json={"graph": "0" * 64})
    for response in (announced, chunked, form, document):
        assert (response.status_code, slug(response)) == (413, "too-large")
    assert nothing_is_stored(store)


@pytest.mark.parametrize(("code", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 503)])
def test_a_failing_disk_is_told_and_nothing_stays(
    api, store, model_bytes: bytes, monkeypatch: pytest.MonkeyPatch, code: int, status: int
) -> None:
    def fail(file: object) -> None:
        raise OSError(code, "no")

    with monkeypatch.context() as patch:
        patch.setattr("service.store.durable.sync_file", fail)
        answers = [api.post("/models", content=model_bytes), api.post("/models", files={"model": model_bytes})]
    assert [answer.status_code for answer in answers] == [status, status]
    assert nothing_is_stored(store)
    assert api.post("/models", content=model_bytes).status_code == 201


def test_a_known_model_needs_no_upload(api, model_bytes: bytes) -> None:
    model = digest_of(model_bytes)
    assert [api.head(path).status_code for path in (f"/models/{model}", f"/blobs/{model}")] == [404, 404]
    api.post("/models", content=model_bytes)
    assert [api.head(path).status_code for path in (f"/models/{model}", f"/blobs/{model}")] == [200, 200]
    assert api.head(f"/blobs/{model}").headers["content-length"] == str(len(model_bytes))


@pytest.mark.parametrize("model", ["0" * 64, "x", "..%2f..%2fetc%2fpasswd", "A" * 64, "%00"])
def test_an_unknown_model_is_a_404(api, model: str) -> None:
    response = api.get(f"/models/{model}")
    assert response.status_code == 404
    assert slug(response) in ("model-not-found", "not-found")


def test_models_are_listed_in_pages(api, store, external_model, model_bytes: bytes) -> None:
    graph, data = external_model
    ids = {api.post("/models", content=model_bytes).json()["id"]}
    ids.add(api.post("/models", files=[("model", ("m", graph)), ("data", ("weights/w.bin", data))]).json()["id"])
    first = api.get("/models?limit=1").json()
    second = api.get("/models", params={"limit": 1, "cursor": first["next"]}).json()
    assert {first["items"][0]["id"], second["items"][0]["id"]} == ids
    assert second["next"] is None
    assert {item["id"] for item in api.get("/models").json()["items"]} == ids


def test_a_list_is_not_sent_twice(api, model_bytes: bytes) -> None:
    tag = api.get("/models").headers["etag"]
    assert api.get("/models", headers={"If-None-Match": tag}).status_code == 304
    api.post("/models", content=model_bytes)
    assert api.get("/models", headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "cursor=%ff", "cursor=!", "colour=red"])
def test_a_wrong_query_is_refused(api, query: str) -> None:
    response = api.get(f"/models?{query}")
    assert (response.status_code, slug(response)) == (422, "invalid-request")
    assert response.json()["errors"]


def test_a_model_tells_its_engines(api, publish, model_bytes: bytes) -> None:
    model = api.post("/models", content=model_bytes).json()["id"]
    assert api.get(f"/models/{model}").json()["engines"] == []
    engine = publish(model=model)
    assert [item["digest"] for item in api.get(f"/models/{model}").json()["engines"]] == [engine.digest]
