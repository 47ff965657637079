"""A converted model says how it was converted, and is not converted alike again."""

import pytest

from tests.worker.precision.conftest import Convert
from worker.precision.provenance import KEY

GRAPH = (
    "g (float[2,64] x) => (float[2,64] y) { a = MatMul(x, w) h = Cast<to = 10>(a) f = Cast<to = 1>(h) "
    "e = Mul(f, f) y = MatMul(e, w) }"
)


@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
def test_converting_again_changes_nothing(convert_text: Convert, convert_model: Convert, mode: str) -> None:
    once = convert_text(GRAPH, weights={"w": (64, 64)}, mode=mode)
    twice = convert_model(once.model, "again", mode=mode)
    assert twice.model == once.model
    assert twice.report.counts.casts_added == 0


def test_the_stamp_tells_mode_trunk_and_attention(convert_text: Convert) -> None:
    found = convert_text(GRAPH, weights={"w": (64, 64)}, mode="full", trunk="bf16", bounded_attention=False)
    stamps = [entry.value for entry in found.model.metadata_props if entry.key == KEY]
    assert stamps == ["mode full, trunk bf16, unbounded attention"]
