"""Engines over HTTP: downloads that can be cached, resumed and verified; lists; the newest one."""

import base64
import hashlib

import httpx
import pytest

from service.http.blobs import attachment
from service.store.local import LocalStore

DATA = bytes(range(256)) * 20_000


def b64(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def test_an_engine_is_downloaded_by_its_digest(api: httpx.Client, publish) -> None:
    engine = publish(DATA, name="net")
    response = api.get(f"/engines/{engine.digest}")
    assert response.status_code == 200
    assert response.content == DATA
    headers = response.headers
    assert headers["etag"] == f'"{engine.digest}"'
    assert headers["content-length"] == str(len(DATA))
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-digest"] == headers["repr-digest"] == f"sha-256=:{b64(DATA)}:"
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert headers["accept-ranges"] == "bytes"
    assert 'filename="net-portable-rope-fp16.engine"' in headers["content-disposition"]


def test_head_tells_the_same_without_bytes(api: httpx.Client, publish) -> None:
    engine = publish(DATA)
    head = api.head(f"/engines/{engine.digest}", headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(DATA)))


def test_a_range_is_a_part_of_the_whole(api: httpx.Client, publish) -> None:
    engine = publish(DATA)
    response = api.get(f"/engines/{engine.digest}", headers={"Range": "bytes=1000-2000999"})
    assert response.status_code == 206
    assert response.content == DATA[1000:2001000]
    assert response.headers["content-range"] == f"bytes 1000-2000999/{len(DATA)}"
    assert response.headers["content-length"] == "2000000"
    assert response.headers["repr-digest"] == f"sha-256=:{b64(DATA)}:"
    assert "content-digest" not in response.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Range": "bytes=0-1,3-4"}, 200),
        ({"Range": "bytes=0-1", "If-Range": "{etag}"}, 206),
        ({"Range": "bytes=0-1", "If-Range": "W/{etag}"}, 200),
        ({"Range": "bytes=0-1", "If-Range": '"other"'}, 200),
        ({"Range": "bytes=0-1", "If-None-Match": "{etag}"}, 304),
        ({"If-None-Match": 'W/{etag}, "x"'}, 304),
        ({"If-None-Match": '"x"'}, 200),
        ({"Range": "bytes=500-0"}, 416),
        ({"Range": "bytes=-0"}, 416),
        ({"Range": "bytes=99999999-"}, 416),
        ({"Range": "nonsense"}, 416),
    ],
)
def test_conditions_and_ranges(api: httpx.Client, publish, headers: dict[str, str], status: int) -> None:
    engine = publish(DATA)
    sent = {name: value.replace("{etag}", f'"{engine.digest}"') for name, value in headers.items()}
    response = api.get(f"/engines/{engine.digest}", headers=sent)
    assert response.status_code == status
    if status == 416:
        assert response.headers["content-range"] == f"bytes */{len(DATA)}"
        assert response.json()["type"] == "urn:atoll:problem:range-not-satisfiable"
    if status == 304:
        assert response.headers["etag"] == f'"{engine.digest}"'


def test_the_evidence_is_beside_the_engine(api: httpx.Client, publish) -> None:
    engine = publish(DATA, name="net")
    manifest = api.get(f"/engines/{engine.digest}/manifest").json()
    assert (manifest["digest"], manifest["size"], manifest["arch"]) == (engine.digest, len(DATA), "portable")
    graph = api.get(f"/engines/{engine.digest}/onnx")
    assert graph.content == b"graph of " + DATA
    assert 'filename="net-portable-rope-fp16.onnx"' in graph.headers["content-disposition"]
    assert api.get(f"/engines/{engine.digest}/report").json() == {"islands": []}
    log = api.get(f"/engines/{engine.digest}/log")
    assert (log.text, log.headers["content-type"]) == ("built\n", "text/plain; charset=utf-8")
    absent = api.get(f"/engines/{engine.digest}/onnx-data")
    assert (absent.status_code, absent.json()["type"]) == (404, "urn:atoll:problem:not-found")


@pytest.mark.parametrize("part", ["", "/manifest", "/onnx", "/onnx-data", "/report", "/log"])
@pytest.mark.parametrize("digest", ["0" * 64, "x", "A" * 64])
def test_an_unknown_engine_is_a_404(api: httpx.Client, part: str, digest: str) -> None:
    response = api.get(f"/engines/{digest}{part}")
    assert (response.status_code, response.json()["type"]) == (404, "urn:atoll:problem:engine-not-found")


def test_a_blob_that_is_no_engine_is_not_served(api: httpx.Client, publish) -> None:
    assert api.get(f"/engines/{publish().onnx}").status_code == 404


def test_a_damaged_engine_is_never_sent(api: httpx.Client, publish, store: LocalStore) -> None:
    engine = publish(DATA)
    path = store.local_path(engine.digest)
    path.chmod(0o644)
    path.write_bytes(DATA[:-1] + b"?")
    response = api.get(f"/engines/{engine.digest}")
    assert (response.status_code, response.json()["type"]) == (500, "urn:atoll:problem:corrupt-artifact")
    assert api.get(f"/engines/{engine.digest}").status_code == 404


def test_engines_are_listed_newest_first_in_pages(api: httpx.Client, publish) -> None:
    engines = [
        publish(b"%d" % n, mode=mode).digest for n, mode in enumerate(("rope", "full", "minimal", "none", "rope"))
    ]
    listed: list[str] = []
    cursor = None
    while True:
        page = api.get("/engines", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        listed += [item["digest"] for item in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert listed == engines[::-1]


def test_an_engine_of_two_builds_is_listed_once(api: httpx.Client, publish) -> None:
    first, second = publish(b"same", mode="rope"), publish(b"same", mode="full")
    assert first.digest == second.digest
    assert [item["mode"] for item in api.get("/engines").json()["items"]] == ["rope"]
    found = api.get(f"/models/{first.model}/engines/portable/full")
    assert found.headers["location"] == f"/engines/{first.digest}"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["windows", "sm_89", "bf16", "base"]),
        ("arch=sm_89", ["sm_89"]),
        ("trunk=bf16", ["bf16"]),
        ("platform=windows-x86_64", ["windows"]),
        ("toolchain=tensorrt-rtx&arch=portable", ["windows", "bf16", "base"]),
        ("toolchain=tensorrt", []),
        (f"model={'b' * 64}", []),
    ],
)
def test_engines_are_filtered(api: httpx.Client, publish, query: str, found: list[str]) -> None:
    publish(b"1", name="base")
    publish(b"2", name="bf16", trunk="bf16")
    publish(b"3", name="sm_89", arch="sm_89")
    publish(b"4", name="windows", platform="windows-x86_64")
    assert [item["model_name"] for item in api.get(f"/engines?{query}").json()["items"]] == found


@pytest.mark.parametrize(
    ("query", "found"),
    [("", b"3"), ("trunk=fp16", b"3"), ("trunk=bf16", b"2"), ("toolchain_version=1.6", b"1"), ("platform=other", None)],
)
def test_the_newest_engine_is_a_redirect_away(api: httpx.Client, publish, query: str, found: bytes | None) -> None:
    published = [
        publish(b"1", toolchain_version="1.6"),
        publish(b"2", trunk="bf16"),
        publish(b"3"),
        publish(b"4", arch="sm_89"),
    ]
    response = api.get(f"/models/{'a' * 64}/engines/portable/rope?{query}")
    if found is None:
        assert (response.status_code, response.json()["type"]) == (404, "urn:atoll:problem:engine-not-found")
        assert [item["digest"] for item in response.json()["available"]] == [item.digest for item in published[::-1]]
        return
    assert response.status_code == 302
    assert response.headers["location"] == f"/engines/{hashlib.sha256(found).hexdigest()}"
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("name", "disposition"),
    [
        ("net.engine", "attachment; filename=\"net.engine\"; filename*=UTF-8''net.engine"),
        ('a"b;c.engine', "attachment; filename=\"a_b_c.engine\"; filename*=UTF-8''a%22b%3Bc.engine"),
        ("é\r\nX: y", "attachment; filename=\"X_y\"; filename*=UTF-8''%C3%A9%0D%0AX%3A%20y"),
        ("../x", "attachment; filename=\"x\"; filename*=UTF-8''..%2Fx"),
        ("…", "attachment; filename=\"download\"; filename*=UTF-8''%E2%80%A6"),
    ],
)
def test_any_name_is_safe_in_a_header(name: str, disposition: str) -> None:
    assert attachment(name) == disposition
