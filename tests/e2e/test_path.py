"""The whole path on real parts: two models over HTTP to engines by digest, and all of it again after a restart."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Running, finished, start, up

pytestmark = pytest.mark.slow

OCR_PROFILE = {"x": {"min": [1, 3, 48, 32], "opt": [1, 3, 48, 320], "max": [1, 3, 48, 1280]}}
DIT_PROFILE = {
    "x": {"min": [1, 64, 16], "opt": [1, 64, 256], "max": [1, 64, 1024]},
    "local_add_cond": {"min": [1, 65, 16], "opt": [1, 65, 256], "max": [1, 65, 1024]},
}


@dataclass(frozen=True)
class Built:
    """One model's way: the first answer to its submission and the record at its end."""

    path: Path
    profile: dict[str, Any]
    answer: httpx.Response
    record: dict[str, Any]

    @property
    def digest(self) -> str:
        return str(self.record["engine"]["digest"])


def submit(url: str, path: Path, profile: dict[str, Any]) -> httpx.Response:
    params = json.dumps({"profiles": [profile], "labels": {"from": "e2e"}})
    with path.open("rb") as file:
        files = {"model": (path.name, file), "params": (None, params)}
        return httpx.post(f"{url}/builds", files=files, timeout=60)


def build(url: str, path: Path, profile: dict[str, Any]) -> Built:
    answer = submit(url, path, profile)
    assert answer.status_code == 202, answer.text
    return Built(path, profile, answer, finished(url, answer.json()["id"]))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with up(tmp_path_factory.mktemp("atoll")) as service:
        yield service


@pytest.fixture(scope="module")
def built(running: Running, ocr: Path, dit: Path) -> tuple[Built, ...]:
    return (build(running.url, ocr, OCR_PROFILE), build(running.url, dit, DIT_PROFILE))


def test_both_models_become_engines(built: tuple[Built, ...]) -> None:
    for one in built:
        assert one.record["status"] == "succeeded", one.record["problem"]
        assert one.answer.headers["Location"] == f"/builds/{one.record['id']}"
        assert [timing["name"] for timing in one.record["stages"]] == [
            *("fetching", "converting", "checking", "building", "inspecting", "publishing"),
        ]


def test_the_download_is_what_its_name_says(running: Running, built: tuple[Built, ...]) -> None:
    for one in built:
        answer = httpx.get(f"{running.url}/engines/{one.digest}", timeout=60)
        assert answer.status_code == 200
        assert hashlib.sha256(answer.content).hexdigest() == one.digest
        assert len(answer.content) == one.record["engine"]["size"]


def test_the_engine_carries_its_evidence(running: Running, built: tuple[Built, ...]) -> None:
    for one in built:
        manifest = httpx.get(f"{running.url}/engines/{one.digest}/manifest").json()
        assert (manifest["digest"], manifest["build"]) == (one.digest, one.record["id"])
        onnx = httpx.get(f"{running.url}/engines/{one.digest}/onnx", timeout=60).content
        assert hashlib.sha256(onnx).hexdigest() == manifest["onnx"]
        report = httpx.get(f"{running.url}/engines/{one.digest}/report").json()
        assert all(island["reason"] for island in report["islands"])
        assert "converting" in httpx.get(f"{running.url}/engines/{one.digest}/log").text


def test_half_precision_was_built_and_is_close_to_fp32(built: tuple[Built, ...]) -> None:
    for one in built:
        proof = one.record["proof"]
        assert proof["verdict"] == "passed"
        assert proof["half_tensor_share"] > 0.4


def test_the_transformer_is_fully_fused_and_exact(running: Running, built: tuple[Built, ...]) -> None:
    dit = built[1]
    proof = dit.record["proof"]
    assert proof["fused_attentions"] == proof["attentions"] == 8
    assert proof["cosine"] >= 0.9999
    assert proof["builder_warnings"] == []
    report = httpx.get(f"{running.url}/builds/{dit.record['id']}/report").json()
    assert any("norm" in family.lower() for family in report["islands_by_family"])
    assert any("rot" in family.lower() for family in report["islands_by_family"])


def test_the_same_request_is_answered_at_once(running: Running, built: tuple[Built, ...]) -> None:
    for one in built:
        again = submit(running.url, one.path, one.profile)
        assert again.status_code == 200
        assert again.json()["engine"]["digest"] == one.digest
        assert again.json()["status"] == "succeeded"


def test_the_newest_engine_is_found_by_model_arch_and_mode(running: Running, built: tuple[Built, ...]) -> None:
    for one in built:
        spec = one.record["spec"]
        answer = httpx.get(f"{running.url}/models/{spec['model']}/engines/{spec['arch']}/rope")
        assert answer.status_code == 302
        assert answer.headers["Location"] == f"/engines/{one.digest}"


def test_a_restart_finds_every_record_and_engine(
    tmp_path_factory: pytest.TempPathFactory, running: Running, built: tuple[Built, ...]
) -> None:
    assert running.stop() == 0
    again = start(running.data_dir)
    try:
        for one in built:
            record = httpx.get(f"{again.url}/builds/{one.record['id']}").json()
            assert (record["status"], record["engine"]) == ("succeeded", one.record["engine"])
            engine = httpx.get(f"{again.url}/engines/{one.digest}", timeout=60).content
            assert hashlib.sha256(engine).hexdigest() == one.digest
            assert submit(again.url, one.path, one.profile).status_code == 200
        listed = httpx.get(f"{again.url}/builds").json()["items"]
        assert {one.record["id"] for one in built} <= {record["id"] for record in listed}
    finally:
        again.stop()
