"""Norms that are one operator."""

import pytest

from tests.worker.precision.planned import Planned, plan, plan_in_trunk

NORMS = {
    "LayerNormalization": (17, "y = LayerNormalization(x, gamma, beta)"),
    "RMSNormalization": (23, "y = RMSNormalization(x, gamma)"),
    "SimplifiedLayerNormalization": (17, "y = com.microsoft.SimplifiedLayerNormalization(x, gamma)"),
    "SkipSimplifiedLayerNormalization": (17, "y = com.microsoft.SkipSimplifiedLayerNormalization(x, x, gamma)"),
    "SkipLayerNormalization": (17, "y = com.microsoft.SkipLayerNormalization(x, x, gamma)"),
    "LpNormalization": (17, "y = LpNormalization<p = 2, axis = -1>(x)"),
    "MeanVarianceNormalization": (17, "y = MeanVarianceNormalization<axes = [2]>(x)"),
    "InstanceNormalization": (17, "y = InstanceNormalization(x, channels, channels)"),
    "GroupNormalization": (21, "y = GroupNormalization<num_groups = 2>(x, channels, channels)"),
}
CHANNELS = "float[8] channels = {1,1,1,1,1,1,1,1}"


@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
@pytest.mark.parametrize(("opset", "body"), NORMS.values(), ids=NORMS)
def test_the_operator_is_fp32_in_each_mode(opset: int, body: str, mode: str) -> None:
    planned = plan_in_trunk(body, opset, CHANNELS, mode=mode)
    assert planned.island("normalization") == {"y"}
    assert planned.half() >= {"x", "output"}


def batch_norm(opset: int) -> Planned:
    text = (
        "g (float[1,4,8,8] input) => (float[1,4,8,8] output) "
        "<float[4] a = {1,1,1,1}, float[4] v = {100000, 0.0000001, 1, 1}> "
        "{ x = Conv<pads = [1,1,1,1]>(input, k) y = BatchNormalization(x, a, a, a, v) "
        "output = Conv<pads = [1,1,1,1]>(y, k) }"
    )
    return plan(text, opset, {"k": (4, 4, 3, 3)})


def test_a_batch_norm_before_opset_15_is_fp32_since_statistics_share_the_dtype_of_its_input() -> None:
    planned = batch_norm(9)
    assert planned.island("normalization") == {"y"}
    assert "opset 9" in planned.reason("y")


def test_a_batch_norm_from_opset_15_is_half_beside_fp32_statistics() -> None:
    planned = batch_norm(15)
    assert "y" in planned.half()
    assert planned.declined("normalization") == ["its statistics stay FP32 beside a half input"]
    norm = planned.graph.producer("y")
    assert planned.plan.decisions[norm.index].half == {"T"}
