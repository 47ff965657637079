"""The steps where they decide: what is staged, what passes, what is published."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from service.builds.repository import BuildRepository, new_record
from service.builds.types import Accepted, Attempt, BuildSpec, Proof, now
from service.engines.repository import EngineRepository
from service.errors import CheckFailed, ExternalDataPath, PrecisionNotBuilt
from service.models.repository import ModelRepository
from service.settings import Settings
from service.store.local import LocalStore
from worker.journal import Journal
from worker.precision.convert import preview
from worker.steps.check import enforce
from worker.steps.context import Context, Verification, Work
from worker.steps.fetch import confined, fetch
from worker.steps.inspect import inspect
from worker.steps.publish import publish
from worker.types import ConvertRequest, EngineResult
from worker.version import CONVERTER_VERSION

MakeContext = Callable[..., Context]
REPORT = {
    "counts": {"half_tensors": 3, "half_tensor_share": 0.75},
    "attentions": [{"bounded": True}, {"bounded": False}, {"bounded": True}],
}


@pytest.fixture
def make_context(settings: Settings, store: LocalStore, client: redis.Redis, model: str, tmp_path: Path) -> MakeContext:
    """The context of an attempt at the tiny model (or at `model`)."""
    builds = BuildRepository.over(settings, store, client)

    def make_context(build: str = "b1", **fields: Any) -> Context:
        resolved = {"model": model, "arch": "portable", "toolchain": "tensorrt-rtx", "toolchain_version": "1", **fields}
        spec = BuildSpec.model_validate(resolved)
        key = spec.key(converter_version=CONVERTER_VERSION, platform="linux-x86_64")
        accepted = Accepted(id=build, key=key, spec=spec, submitter="me", platform="linux-x86_64", created_at=now())
        attempt = Attempt(n=1, worker="w", started_at=now())
        folder = tmp_path / f"scratch-{build}"
        folder.mkdir()
        found = ModelRepository(store).get(spec.model)
        assert found is not None
        return Context(
            store=store,
            facts=builds.facts,
            accepted=accepted,
            attempt=attempt,
            model=found,
            folder=folder,
            journal=Journal(builds.projection, new_record(accepted), attempt, 60),
            should_stop=lambda: False,
            seconds=60,
            memory_bytes=1 << 30,
        )

    return make_context


def built(context: Context, data: bytes, **facts: Any) -> EngineResult:
    context.engine.write_bytes(data)
    return EngineResult(
        engine=context.engine,
        size=len(data),
        toolchain="tensorrt-rtx",
        toolchain_version="1",
        platform="linux-x86_64",
        arch="portable",
        seconds=1.0,
        peak_rss=1,
        profiles=1,
        **{"fused_attentions": 2, **facts},
    )


def test_the_upload_is_staged_as_private_files_where_the_graph_looks(
    make_context: MakeContext, store: LocalStore, external_model: str
) -> None:
    context = make_context(model=external_model)
    fetch(context, Work(graph=context.source))
    staged = context.source.parent / "weights" / "w.bin"
    blob = store.local_path(context.model.external_data["weights/w.bin"])
    assert staged.read_bytes() == blob.read_bytes()
    assert (staged.stat().st_ino, staged.stat().st_nlink) != (blob.stat().st_ino, 2)
    assert not staged.is_symlink()
    staged.write_bytes(b"spoiled")
    assert blob.read_bytes() != b"spoiled"


@pytest.mark.parametrize("location", ["../x", "/etc/passwd", "a/../../x", "", "a\0b", "a\\b"])
def test_a_location_that_leads_out_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(ExternalDataPath):
        confined(tmp_path, location)


@pytest.mark.parametrize(
    ("trunk", "dtypes", "refused"),
    [
        ("fp16", {"half": 3, "float": 1}, False),
        ("fp16", {"float": 4}, True),
        ("bf16", {"bf16": 3}, False),
        ("bf16", {"half": 3}, True),
    ],
)
def test_an_engine_without_the_trunk_dtype_is_no_success(
    make_context: MakeContext, trunk: str, dtypes: dict[str, int], refused: bool
) -> None:
    context = make_context(trunk=trunk)
    work = Work(graph=context.source, report=REPORT, built=built(context, b"engine", tensor_dtypes=dtypes))
    if refused:
        with pytest.raises(PrecisionNotBuilt, match=trunk):
            inspect(context, work)
    else:
        proof = inspect(context, work).proof
        assert (proof.half_tensor_share, proof.attentions, proof.fused_attentions) == (0.75, 2, 2)


def test_a_graph_that_was_kept_in_fp32_on_purpose_is_not_refused(make_context: MakeContext) -> None:
    context = make_context(keep_fp32=("*",))
    report = {**REPORT, "counts": {"half_tensors": 0, "half_tensor_share": 0.0}}
    work = Work(graph=context.source, report=report, built=built(context, b"engine", tensor_dtypes={"float": 4}))
    assert inspect(context, work).proof.half_tensor_share == 0.0


@pytest.mark.parametrize(
    ("verification", "on_fail", "refused"),
    [
        (Verification("passed", cosine=1.0), "fail", False),
        (Verification("not verified", "random"), "fail", False),
        (Verification("failed", "cosine 0.9", 0.9, ({"name": "y", "nonfinite": 0},)), None, False),
        (Verification("failed", "cosine 0.9", 0.9, ({"name": "y", "nonfinite": 0},)), "warn", False),
        (Verification("failed", "cosine 0.9", 0.9, ({"name": "y", "nonfinite": 0},)), "fail", True),
        (Verification("failed", "overflow", 1.0, ({"name": "y", "nonfinite": 2},)), None, True),
    ],
)
def test_overflow_always_fails_and_inaccuracy_if_asked(
    make_context: MakeContext, verification: Verification, on_fail: str | None, refused: bool
) -> None:
    context = make_context(accuracy={"on_fail": on_fail})
    if refused:
        with pytest.raises(CheckFailed):
            enforce(context, verification)
    else:
        enforce(context, verification)


def test_what_is_published_leads_from_the_key_to_every_blob(make_context: MakeContext, store: LocalStore) -> None:
    context = make_context(mode="none")
    proof = Proof(half_tensor_share=0.5)
    work = publish(context, Work(graph=context.source, built=built(context, b"engine"), proof=proof))
    digest = context.facts.answer(context.accepted.key)
    assert digest is not None
    manifest = EngineRepository(store).get(digest)
    assert manifest is not None
    assert (manifest.key, manifest.proof, manifest.onnx) == (context.accepted.key, proof, context.model.graph)
    assert set(work.result) == {"engine", "onnx", "report", "report-html", "log"}
    assert all(store.blob(blob) for blob in work.result.values())
    with store.open_blob(work.result["report"]) as file:
        assert json.load(file)["mode"] == "none"


def test_the_engine_that_was_first_is_the_result_of_later_attempts(make_context: MakeContext) -> None:
    first, second = make_context("b1", mode="none"), make_context("b2", mode="none")
    won = publish(first, Work(graph=first.source, built=built(first, b"one"), proof=Proof(cosine=0.5)))
    lost = publish(second, Work(graph=second.source, built=built(second, b"two")))
    assert lost.engine == won.engine
    assert lost.result == won.result
    assert lost.proof.cosine == 0.5


def test_equal_bytes_for_two_keys_are_one_engine_with_two_reports(make_context: MakeContext) -> None:
    first, second = make_context("b1", mode="none"), make_context("b2", mode="none", workspace_gb=1)
    one = publish(first, Work(graph=first.source, built=built(first, b"same")))
    two = publish(second, Work(graph=second.source, built=built(second, b"same")))
    assert one.engine == two.engine
    assert one.result["log"] != two.result["log"] or first.journal.text() == second.journal.text()
    assert second.facts.answer(second.accepted.key) == one.result["engine"]


def test_an_answer_whose_engine_was_deleted_is_replaced(make_context: MakeContext, store: LocalStore) -> None:
    first, second = make_context("b1", mode="none"), make_context("b2", mode="none")
    lost = publish(first, Work(graph=first.source, built=built(first, b"one")))
    store.delete(f"engines/{lost.result['engine']}")
    new = publish(second, Work(graph=second.source, built=built(second, b"two")))
    assert new.engine is not None
    assert second.facts.answer(second.accepted.key) == new.engine.digest != lost.result["engine"]


def test_an_upload_with_many_data_files_that_stays_fp32_is_published_as_uploaded(make_context: MakeContext) -> None:
    context = make_context()
    fetch(context, Work(graph=context.source))
    graph = context.folder / "converted" / "model.onnx"
    graph.parent.mkdir()
    report = preview(ConvertRequest(context.source, graph)).model_dump(mode="json")
    for name in ("model.onnx", "a.bin", "b.bin"):
        (graph.parent / name).write_bytes(b"a copy")
    work = publish(context, Work(graph=graph, report=report, built=built(context, b"engine")))
    assert work.result["onnx"] == context.model.graph
