"""Casts to FP32 in the upload: `full` follows them."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

MARKED = {
    "up to the next Cast": ("c = Cast<to = 1>(x) a = Tanh(c) b = Mul(a, a) y = Cast<to = 1>(b)", "a b"),
    "one read of two": ("c = Cast<to = 1>(x) a = Add(c, x) y = Cast<to = 1>(a)", "a"),
}


@pytest.mark.parametrize(("body", "nodes"), MARKED.values(), ids=MARKED)
def test_full_keeps_what_is_behind_a_cast(body: str, nodes: str) -> None:
    assert plan_in_trunk(body, mode="full").island("explicit FP32") >= set(nodes.split())


@pytest.mark.parametrize("mode", ["minimal", "rope"])
@pytest.mark.parametrize(("body", "nodes"), MARKED.values(), ids=MARKED)
def test_other_modes_do_not(body: str, nodes: str, mode: str) -> None:
    assert plan_in_trunk(body, mode=mode).half() >= set(nodes.split())


def test_a_bounded_core_ends_the_region() -> None:
    planned = plan_in_trunk(
        "c = Cast<to = 1>(x) q = Tanh(c) t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(q, t) p = Softmax(s) "
        "y = MatMul(p, x)",
        mode="full",
    )
    assert planned.island("explicit FP32") == {"q"}
    assert planned.half() >= {"s", "p", "y"}
