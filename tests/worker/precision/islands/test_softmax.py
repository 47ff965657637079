"""Softmax outside attention cores."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

LONE = {
    "classifier": "y = Softmax<axis = -1>(x)",
    "log-softmax": "y = LogSoftmax<axis = -1>(x)",
    "router": "l = MatMul(x, w) y = Softmax<axis = -1>(l)",
    "gate that scales an activation": "s = Softmax<axis = -1>(x) y = Mul(s, x)",
}


@pytest.mark.parametrize("mode", ["minimal", "rope"])
@pytest.mark.parametrize("body", LONE.values(), ids=LONE)
def test_a_lone_softmax_is_fp32(body: str, mode: str) -> None:
    planned = plan_in_trunk(body, mode=mode)
    assert len(planned.island("softmax")) == 1
    assert planned.half() >= {"x", "output"}


def test_the_softmax_of_a_bounded_core_is_declined() -> None:
    planned = plan_in_trunk("t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(x, t) p = Softmax(s) y = MatMul(p, x)")
    assert planned.island("softmax") == set()
    assert planned.declined("softmax") == ["it is the softmax of a bounded attention core"]


def test_the_softmax_of_a_core_that_is_not_bounded_is_fp32() -> None:
    planned = plan_in_trunk(
        "t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(x, t) p = Softmax(s) y = MatMul(p, x)", bounded_attention=False
    )
    assert planned.islands() >= {"s", "p"}
