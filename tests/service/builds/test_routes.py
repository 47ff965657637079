"""`/builds` and `/groups` over HTTP."""

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from service.builds.repository import BuildRepository
from service.builds.types import Attempt, BuildSpec, Finished, Stage, Status, now
from service.store.local import LocalStore
from service.workers.types import WorkerInfo

PROFILE = {"x": {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}}
Post = Callable[..., httpx.Response]


@pytest.fixture
def post(api: httpx.Client, model: str, announced: WorkerInfo) -> Post:
    """Posts a spec of the uploaded model as JSON."""

    def post(*, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        body = {"model": model, "profiles": [PROFILE], **fields}
        return api.post("/builds", json=body, headers=headers)

    return post


def problem(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["Content-Type"] == "application/problem+json"
    return response.status_code, response.json()["type"].removeprefix("urn:atoll:problem:")


def end(builds: BuildRepository, store: LocalStore, build: str, status: Status = Status.FAILED) -> None:
    """The build ends, leaving a log."""
    with store.new_blob() as writer:
        writer.write(b"what happened\n")
        log = writer.commit()
    finished = Finished(status=status, attempt=0, finished_at=now(), result={"log": log.digest})
    builds.facts.end(build, finished)
    builds.close(build, finished)


def test_a_new_build_is_accepted_and_can_be_looked_at(api: httpx.Client, post: Post) -> None:
    response = post()
    record = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == f"/builds/{record['id']}"
    assert int(response.headers["Retry-After"]) > 0
    assert (record["status"], record["stage"], record["attempt"]) == ("queued", "waiting", 0)
    shown = api.get(response.headers["Location"])
    assert shown.json() == record
    assert record["queue_position"] == 0
    assert post().json()["id"] == record["id"]


def test_an_engine_that_is_there_is_answered_with_200(post: Post, builds: BuildRepository, publish: Any) -> None:
    record = post().json()
    manifest = publish()
    builds.facts.put_answer(record["key"], manifest.digest)
    done = Finished(status=Status.SUCCEEDED, attempt=1, finished_at=now(), result={"engine": manifest.digest})
    builds.close(record["id"], builds.facts.succeed(record["id"], done))
    response = post()
    assert (response.status_code, response.json()["status"]) == (200, "succeeded")
    assert response.json()["links"]["engine"] == f"/engines/{manifest.digest}"


def test_a_form_uploads_and_submits_in_one_request(
    api: httpx.Client, announced: WorkerInfo, model_bytes: bytes, store: LocalStore
) -> None:
    parts = {"model": ("net.onnx", model_bytes), "params": (None, json.dumps({"profiles": [PROFILE], "trunk": "bf16"}))}
    response = api.post("/builds", files=parts)
    assert response.status_code == 202
    assert response.json()["spec"]["trunk"] == "bf16"
    assert store.exists(f"models/{response.json()['spec']['model']}")


def test_a_form_brings_external_data(
    api: httpx.Client, announced: WorkerInfo, external_model: tuple[bytes, bytes]
) -> None:
    graph, weights = external_model
    parts = [
        ("model", ("net.onnx", graph)),
        ("data", ("weights/w.bin", weights)),
        ("params", (None, json.dumps({"profiles": [PROFILE]}))),
    ]
    assert api.post("/builds", files=parts).status_code == 202


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("{", (400, "malformed-json")),
        ('{"mode": "nope"}', (422, "invalid-request")),
        ('{"model": "x"}', (422, "invalid-request")),
        ("[]", (422, "invalid-request")),
    ],
)
def test_a_form_with_bad_parameters_leaves_nothing(
    api: httpx.Client, announced: WorkerInfo, model_bytes: bytes, store: LocalStore, params: str,
    expected: tuple[int, str],
) -> None:  # fmt: skip
    response = api.post("/builds", files={"model": ("net.onnx", model_bytes), "params": (None, params)})
    assert problem(response) == expected
    assert list(store.list("blobs/")) == list(store.list("models/")) == []


@pytest.mark.parametrize(
    ("fields", "expected", "says"),
    [
        ({"modes": "rope"}, (422, "invalid-request"), "modes"),
        ({"mode": "all"}, (422, "invalid-request"), "mode"),
        ({"workspace_gb": -1}, (422, "invalid-request"), "workspace_gb"),
        ({"arch": []}, (422, "invalid-request"), "arch"),
        ({"arch": ["portable", "cuda"]}, (422, "invalid-request"), "cuda"),
        ({"arch": 7}, (422, "invalid-request"), "arch"),
        ({"arch": "sm_90"}, (422, "no-worker"), "portable, sm_86, sm_89"),
        ({"profiles": []}, (422, "missing-profile"), "dimension 0 (N) of input 'x'"),
        ({"profiles": [{"x": {"min": [4, 4], "opt": [2, 4], "max": [8, 4]}}]}, (422, "invalid-request"), "4, 2, 8"),
        ({"model": "f" * 64}, (404, "model-not-found"), "f" * 64),
    ],
)
def test_bad_input_is_a_problem_that_says_what(
    post: Post, builds: BuildRepository, fields: dict[str, Any], expected: tuple[int, str], says: str
) -> None:
    response = post(**fields)
    assert problem(response) == expected
    assert says in response.json()["detail"]
    assert list(builds.facts.builds()) == []


@pytest.mark.parametrize(
    ("content", "media", "expected"),
    [
        (b"{", "application/json", (400, "malformed-json")),
        (b'{"a": 1, "a": 2}', "application/json", (400, "malformed-json")),
        (b"[]", "application/json", (422, "invalid-request")),
        (b'{"model": NaN}', "application/json", (400, "malformed-json")),
        (b"{}", "text/plain", (415, "unsupported-media-type")),
        (b"{" + b" " * (1 << 20), "application/json", (413, "too-large")),
    ],
)
def test_a_body_that_is_no_request_is_refused(
    api: httpx.Client, content: bytes, media: str, expected: tuple[int, str]
) -> None:
    assert problem(api.post("/builds", content=content, headers={"Content-Type": media})) == expected


def test_an_idempotency_key_gives_the_same_answer_and_fits_one_body(post: Post) -> None:
    key = {"Idempotency-Key": "k1"}
    first = post(headers=key)
    assert post(headers=key).json()["id"] == first.json()["id"]
    assert problem(post(headers=key, trunk="bf16")) == (422, "idempotency-key-reused")


def test_a_list_of_archs_is_a_group(api: httpx.Client, post: Post) -> None:
    response = post(arch=["sm_86", "portable"])
    group = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == f"/groups/{group['id']}"
    assert [build["spec"]["arch"] for build in group["builds"]] == ["sm_86", "portable"]
    shown = api.get(f"/groups/{group['id']}").json()
    assert shown["status"] == "queued"
    listed = api.get("/builds", params={"group": group["id"]}).json()["items"]
    assert {build["id"] for build in listed} == {build["id"] for build in group["builds"]}


def test_a_record_is_not_sent_twice(api: httpx.Client, post: Post, builds: BuildRepository, store: LocalStore) -> None:
    path = post().headers["Location"]
    tag = {"If-None-Match": api.get(path).headers["ETag"]}
    assert api.get(path, headers=tag).status_code == 304
    end(builds, store, path.removeprefix("/builds/"))
    assert api.get(path, headers=tag).status_code == 200


@pytest.mark.parametrize("with_tag", [True, False])
def test_a_waiting_request_is_answered_by_a_change(
    api: httpx.Client, post: Post, builds: BuildRepository, store: LocalStore, with_tag: bool
) -> None:
    path = post().headers["Location"]
    tag = {"If-None-Match": api.get(path).headers["ETag"]} if with_tag else {}
    ending = threading.Timer(0.5, end, (builds, store, path.removeprefix("/builds/")))
    ending.start()
    answer = api.get(path, params={"wait": 60}, headers=tag)
    ending.join()
    assert (answer.status_code, answer.json()["status"]) == (200, "failed")


def test_waiting_in_vain_ends_with_304(api: httpx.Client, post: Post) -> None:
    path = post().headers["Location"]
    tag = {"If-None-Match": api.get(path).headers["ETag"]}
    assert api.get(path, params={"wait": 0.3}, headers=tag).status_code == 304


def test_a_change_that_was_missed_is_answered_at_once(api: httpx.Client, post: Post) -> None:
    path = post().headers["Location"]
    answer = api.get(path, params={"wait": 60}, headers={"If-None-Match": '"older"'})
    assert answer.status_code == 200


@pytest.mark.parametrize("wait", ["61", "-1", "long"])
def test_a_wait_beyond_bounds_is_refused(api: httpx.Client, post: Post, wait: str) -> None:
    assert problem(api.get(post().headers["Location"], params={"wait": wait})) == (422, "invalid-request")


def test_lists_are_filtered_paged_and_tagged(api: httpx.Client, post: Post) -> None:
    ids = [post(trunk=trunk, mode=mode).json()["id"] for trunk in ("fp16", "bf16") for mode in ("rope", "full")]
    first = api.get("/builds", params={"limit": 3})
    second = api.get("/builds", params={"limit": 3, "cursor": first.json()["next"]}).json()
    assert [item["id"] for item in (*first.json()["items"], *second["items"])] == sorted(ids, reverse=True)
    assert second["next"] is None
    assert api.get("/builds", params={"limit": 3}, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304
    some = api.get("/builds", params=[("status", "queued"), ("status", "failed"), ("trunk", "bf16")]).json()["items"]
    assert {item["id"] for item in some} == set(ids[2:])
    chosen = api.get("/builds", params=[("id", ids[2]), ("id", "unknown"), ("id", ids[0])]).json()["items"]
    assert [item["id"] for item in chosen] == [ids[2], ids[0]]


@pytest.mark.parametrize(
    "params",
    [
        {"state": "queued"},
        {"status": "done"},
        {"model": "short"},
        {"limit": 501},
        {"since": "yesterday"},
        {"cursor": "%%%"},
    ],
)
def test_a_filter_that_does_not_exist_is_refused(api: httpx.Client, params: dict[str, Any]) -> None:
    assert problem(api.get("/builds", params=params)) == (422, "invalid-request")


def test_results_of_a_build_that_runs_are_not_there_yet(api: httpx.Client, post: Post, builds: BuildRepository) -> None:
    record = post().json()
    builds.facts.claim(record["id"], Attempt(n=1, worker="w", started_at=now()))
    shown = builds.restore(record["id"])
    assert shown is not None
    builds.projection.put(shown.evolve(stage=Stage.BUILDING))
    response = api.get(f"/builds/{record['id']}/report")
    assert problem(response) == (404, "not-found")
    assert "stage building" in response.json()["detail"]


def test_results_of_a_build_that_ended_are_served(
    api: httpx.Client, post: Post, builds: BuildRepository, store: LocalStore
) -> None:
    record = post().json()
    end(builds, store, record["id"])
    log = api.get(f"/builds/{record['id']}/log")
    assert (log.status_code, log.text) == (200, "what happened\n")
    assert log.headers["Content-Type"].startswith("text/plain")
    assert problem(api.get(f"/builds/{record['id']}/report")) == (404, "not-found")
    assert problem(api.get(f"/builds/{record['id']}/onnx")) == (404, "not-found")


def test_cancelling_is_idempotent(api: httpx.Client, post: Post) -> None:
    path = post().headers["Location"]
    for _ in range(2):
        response = api.post(f"{path}/cancel")
        assert (response.status_code, response.json()["status"]) == (202, "cancelled")


@pytest.mark.parametrize("path", ["/builds/nope", "/builds/nope/log", "/builds/..%2f..%2fetc", "/groups/nope"])
def test_what_does_not_exist_is_not_found(api: httpx.Client, path: str) -> None:
    assert api.get(path).status_code == 404


def test_workers_are_listed_with_their_queues(api: httpx.Client, post: Post) -> None:
    post()
    [worker] = api.get("/workers").json()["items"]
    assert worker["name"] == "w1"
    assert worker["queue_depth"] == {"portable": 1, "sm_86": 0, "sm_89": 0}


def test_the_documented_body_is_whole_and_is_what_is_accepted(api: httpx.Client) -> None:
    operation = api.get("/openapi.json").json()["paths"]["/builds"]["post"]
    content = operation["requestBody"]["content"]
    assert "$ref" not in json.dumps(content)
    spec = content["application/json"]["schema"]
    assert set(spec["properties"]) == set(BuildSpec.model_fields)
    assert [kind["type"] for kind in spec["properties"]["arch"]["anyOf"]] == ["string", "array", "null"]
    assert set(content["multipart/form-data"]["schema"]["properties"]) == {"model", "data", "params"}
    assert {"200", "202", "400", "404", "409", "413", "415", "422", "503"} <= set(operation["responses"])
