"""Real builds: the real worker, the real converter, the real TensorRT builder on a CPU."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from service.builds.repository import BuildFacts
from service.builds.service import BuildService
from service.builds.types import BuildRecord, Finished, Stage, Status
from service.engines.repository import EngineRepository
from service.settings import Settings
from service.store.local import LocalStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Submit = Callable[..., BuildRecord]
Until = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def build(
    service: BuildService, start_worker: Callable[..., "subprocess.Popen[bytes]"], submit: Submit, until: Until
) -> Callable[..., BuildRecord]:
    """Submits the tiny model to a real worker and waits for the end."""
    start_worker(simulated=False)

    def build(**fields: Any) -> BuildRecord:
        record = submit(**fields)
        until(lambda: service.get(record.id).record.status.terminal)
        return service.get(record.id).record

    return build


def finished_of(store: LocalStore, record: BuildRecord) -> Finished:
    finished = BuildFacts(store).finished(record.id)
    assert finished is not None
    return finished


def text(store: LocalStore, digest: str) -> str:
    with store.open_blob(digest) as file:
        return file.read().decode()


def test_an_engine_is_built_published_and_answers_its_key(
    build: Callable[..., BuildRecord], service: BuildService, store: LocalStore, settings: Settings
) -> None:
    record = build(mode="rope", labels={"team": "audio"})
    assert record.status is Status.SUCCEEDED, record.problem
    assert [timing.name for timing in record.stages] == list(Stage)[1:]
    assert record.engine is not None
    assert record.proof is not None
    assert record.proof.verdict == "passed"
    assert record.proof.half_tensor_share == 1.0

    manifest = EngineRepository(store).get(record.engine.digest)
    assert manifest is not None
    assert (manifest.key, manifest.build, manifest.size) == (record.key, record.id, record.engine.size)
    assert store.blob(record.engine.digest) is not None

    finished = finished_of(store, record)
    report = json.loads(text(store, finished.result["report"]))
    assert report["mode"] == "rope"
    assert report["verification"]["verdict"] == "passed"
    assert report["engine"]["tensor_dtypes"]["half"] > 0
    assert "--- building" in text(store, finished.result["log"])
    assert list(BuildFacts(store).pending()) == []
    assert not list((settings.store / "tmp").glob("build-*"))

    again = service.submit(record.spec.model_copy(update={"labels": {}}))
    assert again.answered
    assert again.records[0].id == record.id


def test_mode_none_builds_the_graph_as_uploaded(build: Callable[..., BuildRecord], store: LocalStore) -> None:
    record = build(mode="none")
    assert record.status is Status.SUCCEEDED, record.problem
    assert record.proof is not None
    assert record.proof.verdict == "not verified"
    assert finished_of(store, record).result["onnx"] == record.spec.model


def test_output_onnx_stops_after_the_check(build: Callable[..., BuildRecord], service: BuildService) -> None:
    record = build(mode="rope", output="onnx")
    assert record.status is Status.SUCCEEDED, record.problem
    assert record.engine is None
    assert record.onnx is not None
    assert record.onnx.url == record.links["onnx"] == f"/builds/{record.id}/onnx"
    assert service.submit(record.spec).records[0].id == record.id


@pytest.mark.parametrize(
    ("fields", "slug", "stage"),
    [({"toolchain_options": {"no_such_option": 1}}, "invalid-options", Stage.BUILDING)],
)
def test_a_failed_build_says_where_and_why(
    build: Callable[..., BuildRecord], store: LocalStore, fields: dict[str, Any], slug: str, stage: Stage
) -> None:
    record = build(mode="rope", **fields)
    assert record.status is Status.FAILED
    assert record.stage is stage
    assert record.problem is not None
    assert record.problem.slug == slug
    assert record.problem.detail in text(store, finished_of(store, record).result["log"])


def test_a_model_with_an_unknown_operator_fails_and_names_it(
    service: BuildService, build: Callable[..., BuildRecord], refused_model: str
) -> None:
    record = build(model=refused_model, mode="none")
    assert record.status is Status.FAILED
    assert record.problem is not None
    assert record.problem.slug == "unsupported-op"
    assert "NoSuchOp" in record.problem.detail


def test_external_data_travels_with_the_graph(
    build: Callable[..., BuildRecord], external_model: str, store: LocalStore
) -> None:
    record = build(model=external_model, mode="rope")
    assert record.status is Status.SUCCEEDED, record.problem
