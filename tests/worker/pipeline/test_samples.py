"""Builds that are judged on the user's samples: by the real worker, from upload to proof."""

import io
import json
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from service.builds.service import BuildService
from service.builds.types import BuildRecord, Stage, Status
from service.samples.service import SampleService
from service.store.local import LocalStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def upload(store: LocalStore, size: float) -> str:
    file = io.BytesIO()
    np.savez(file, x=np.full((2, 8), size, np.float32))
    with store.new_blob() as writer:
        writer.write(file.getvalue())
        return SampleService(store).register(writer.commit())[0].digest


@pytest.fixture
def build(
    service: BuildService,
    start_worker: Callable[..., "subprocess.Popen[bytes]"],
    submit: Callable[..., BuildRecord],
    until: Callable[[Callable[[], Any]], Any],
) -> Callable[..., BuildRecord]:
    """Submits the tiny model, without an engine, to a real worker and waits for the end."""
    start_worker(simulated=False)

    def build(**fields: Any) -> BuildRecord:
        record = submit(mode="rope", output="onnx", **fields)
        until(lambda: service.get(record.id).record.status.terminal)
        return service.get(record.id).record

    return build


def test_the_verdict_is_on_the_samples_and_decides(
    build: Callable[..., BuildRecord], service: BuildService, store: LocalStore
) -> None:
    good = build(accuracy={"samples": [upload(store, 1.0), upload(store, 2.0)]})
    assert good.status is Status.SUCCEEDED, good.problem
    assert good.proof is not None
    assert (good.proof.verdict, good.proof.inputs, good.proof.pessimistic) == ("passed", "samples", "passed")
    finished = service.result(good.id)
    assert finished is not None
    with store.open_blob(finished.result["report"]) as file:
        verification = json.load(file)["verification"]
    assert verification["ranges"]["overflow"]
    with store.open_blob(finished.result["report-html"]) as file:
        assert b"On your samples" in file.read()

    bad = build(accuracy={"samples": [upload(store, 1.0), upload(store, 1e6)]})
    assert (bad.status, bad.stage) == (Status.FAILED, Stage.CHECKING)
    assert bad.problem is not None
    assert bad.problem.slug == "check-failed"
    assert "It begins at node" in bad.problem.detail
