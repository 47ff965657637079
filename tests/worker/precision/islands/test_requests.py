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
