"""The scan in a process of its own: its limits, and what is left of its death."""

from pathlib import Path

import onnx
import pytest

from service.errors import InvalidModel, NotOnnx, TooComplex
from service.settings import Settings
from service.wire import child
from service.wire.child import scan_in_child
from service.wire.file import scan_file

SETTINGS = Settings()
TELL_ENVIRONMENT = """
import json, os
print(json.dumps({"refused": {"slug": "", "detail": str(dict(os.environ)), "extensions": {}}}))
"""


@pytest.fixture
def path(tmp_path: Path, model: onnx.ModelProto) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_the_child_tells_the_same_as_a_scan_in_this_process(path: Path) -> None:
    assert scan_in_child(path, {}, SETTINGS) == scan_file(path)


def test_a_refusal_comes_back_as_its_error(path: Path) -> None:
    path.write_bytes(b"dummy\n")
    with pytest.raises(NotOnnx, match="Byte 0") as caught:
        scan_in_child(path, {}, SETTINGS)
    assert caught.value.problem().status == 422


def test_more_memory_than_allowed_is_a_refusal(path: Path, model: onnx.ModelProto) -> None:
    for index in range(40_000):
        model.graph.initializer.add(name=f"{index:01000}", data_type=1, dims=[0])
    path.write_bytes(model.SerializeToString())
    with pytest.raises(TooComplex, match="memory"):
        scan_in_child(path, {}, SETTINGS.model_copy(update={"scan_memory_bytes": 40 << 20}))


def test_more_time_than_allowed_is_a_refusal(path: Path, model: onnx.ModelProto) -> None:
    model.graph.node.extend(list(model.graph.node) * 200_000)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(TooComplex, match="1 s"):
        scan_in_child(path, {}, SETTINGS.model_copy(update={"scan_seconds": 1}))


def test_a_crash_is_a_refusal_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_COMMAND", (child.sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(InvalidModel, match="not accepted"):
        scan_in_child(path, {}, SETTINGS)


def test_the_child_knows_no_secrets(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOLL_REDIS_URL", "redis://:secret@host")
    monkeypatch.setattr(child, "_COMMAND", (child.sys.executable, "-c", TELL_ENVIRONMENT))
    with pytest.raises(InvalidModel) as caught:
        scan_in_child(path, {}, SETTINGS)
    assert "secret" not in caught.value.detail
    assert "PYTHONPATH" in caught.value.detail
