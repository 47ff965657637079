"""Whatever the bytes are, a scan ends in a result or a refusal."""

import json
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.wire.refusal import WireError
from service.wire.scan import scan

SETTINGS = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ends_well(path: Path, data: bytes) -> None:
    """The answer can be told as JSON, and is short."""
    path.write_bytes(data)
    try:
        told = json.dumps(scan(path, {}))
    except WireError as refused:
        told = json.dumps([refused.slug, refused.detail, refused.extensions])
    assert len(told) < 2000


@SETTINGS
@given(data=st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    ends_well(tmp_path / "m", data)


@SETTINGS
@given(edits=st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4))
def test_a_model_with_some_bytes_changed(
    tmp_path: Path, model: onnx.ModelProto, edits: list[tuple[int, bytes]]
) -> None:
    data = bytearray(model.SerializeToString())
    for position, replacement in edits:
        start = position % len(data)
        data[start : start + len(replacement)] = replacement
    ends_well(tmp_path / "m", bytes(data))


@pytest.mark.slow
@settings(SETTINGS, max_examples=5000)
@given(edits=st.lists(st.tuples(st.integers(0, 2**16), st.binary(max_size=8)), min_size=1, max_size=8))
def test_a_model_with_bytes_put_in(tmp_path: Path, model: onnx.ModelProto, edits: list[tuple[int, bytes]]) -> None:
    data = bytearray(model.SerializeToString())
    for position, insertion in edits:
        data[position % len(data) : position % len(data)] = insertion
    ends_well(tmp_path / "m", bytes(data))
