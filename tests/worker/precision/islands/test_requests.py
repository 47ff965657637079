"""What the user asks for by name: keep_fp32 and keep_trunk."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

BODY = "[block_Tanh] t = Tanh(x) [block_Sigmoid] s = Sigmoid(t) y = Add(t, s)"


@pytest.mark.parametrize(
    ("glob", "nodes"),
    [("block_*", "t s"), ("block_Tanh", "t"), ("Sigmoid", "s"), ("Add:y", "y"), ("MatMul", "x output")],
)
def test_keep_fp32_takes_a_glob_over_names_or_an_operator_type(glob: str, nodes: str) -> None:
    assert plan_in_trunk(BODY, keep_fp32=(glob,)).island("requested") == set(nodes.split())


def test_a_word_that_matches_nothing_is_told() -> None:
    planned = plan_in_trunk(BODY, keep_fp32=("blok_*",))
    assert planned.declined("requested") == ["no node has such a name or operator type"]


def test_a_word_of_keep_trunk_that_matches_nothing_is_told_too() -> None:
    planned = plan_in_trunk(BODY, keep_trunk=("blok_*",))
    assert planned.declined("keep_trunk") == ["no node has such a name or operator type"]


def test_what_half_cannot_hold_stays_fp32_in_spite_of_keep_trunk() -> None:
    planned = plan_in_trunk("y = Mul(x, big)", constants="float big = {100000}", keep_trunk=("Mul",))
    assert "beyond fp16's 65504" in planned.reason("y")


def test_keep_fp32_unbounds_the_core_that_it_names() -> None:
    body = "t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(x, t) [sm] p = Softmax(s) y = MatMul(p, x)"
    planned = plan_in_trunk(body, keep_fp32=("sm",))
    assert planned.cores() == []
    assert [core.reason for core in planned.plan.cores] == ["keep_fp32 names a node of it"]


@pytest.mark.parametrize("glob", ["ReduceMean", "[RS]*"])
def test_keep_trunk_takes_nodes_out_of_islands(glob: str) -> None:
    body = "s = Mul(x, x) [R] m = ReduceMean<axes = [-1]>(s) [S] r = Sqrt(m) y = Div(x, r)"
    planned = plan_in_trunk(body, keep_trunk=(glob,))
    assert "m" in planned.half()
    assert planned.island("normalization") >= {"s", "y"}
