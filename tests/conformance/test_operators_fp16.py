"""ONNX's operator tests in FP16. Two files, so that two processes share the work."""

from pathlib import Path

import pytest

from tests.conformance.operator_contract import CHUNKS, faults


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_operator_converts_stays_close_and_is_parsed(chunk: int, tmp_path: Path) -> None:
    assert faults(chunk, "fp16", tmp_path) == {}
