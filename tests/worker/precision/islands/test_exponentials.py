"""Exponentials and logarithms written out, and as one operator."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

WRITTEN_OUT = {
    "softplus": ("e = Exp(x) a = Add(e, one) y = Log(a)", "e a y"),
    "softplus, one on the left": ("e = Exp(x) a = Add(one, e) y = Log(a)", "e a y"),
    "mish": ("e = Exp(x) a = Add(e, one) l = Log(a) t = Tanh(l) y = Mul(x, t)", "e a l"),
    "log-sum-exp": ("e = Exp(x) s = ReduceSum<keepdims = 1>(e, last) l = Log(s) y = Sub(x, l)", "e s l"),
    "log-sum-exp behind its maximum": (
        "m = ReduceMax<axes = [-1]>(x) c = Sub(x, m) e = Exp(c) s = ReduceSum(e, last) l = Log(s) z = Add(l, m) "
        "y = Sub(x, z)",
        "m c e s l",
    ),
    "softmax": (
        "m = ReduceMax<axes = [-1]>(x) c = Sub(x, m) e = Exp(c) s = ReduceSum(e, last) y = Div(e, s)",
        "m c e s y",
    ),
    "sigmoid": ("n = Neg(x) e = Exp(n) a = Add(e, one) y = Reciprocal(a)", "e a y"),
}
OPERATORS = {
    "Softplus": "y = Softplus(x)",
    "Mish": "y = Mish(x)",
    "ReduceLogSumExp": "l = ReduceLogSumExp<axes = [-1]>(x) y = Add(x, l)",
    "ReduceLogSum": "l = ReduceLogSum<axes = [-1]>(x) y = Add(x, l)",
    "Log": "y = Log(x)",
}


@pytest.mark.parametrize(("body", "nodes"), WRITTEN_OUT.values(), ids=WRITTEN_OUT)
def test_an_exponential_is_fp32_until_it_is_of_ordinary_size_again(body: str, nodes: str) -> None:
    planned = plan_in_trunk(body, 17, mode="minimal")
    assert planned.island("exponential") | planned.island("long reduction") >= set(nodes.split())
    assert planned.half() >= {"x", "output"}


@pytest.mark.parametrize("body", OPERATORS.values(), ids=OPERATORS)
def test_the_operator_is_fp32(body: str) -> None:
    assert plan_in_trunk(body, 18 if "Mish" in body else 17, mode="minimal").island("exponential") == {body[0]}


@pytest.mark.parametrize("op", ["Elu", "Selu", "Celu"])
def test_an_exponential_of_negative_values_only_is_declined(op: str) -> None:
    planned = plan_in_trunk(f"y = {op}(x)")
    assert planned.declined("exponential") == ["its exponential is of a negative value only"]


def test_an_exponential_of_constants_is_no_hazard() -> None:
    planned = plan_in_trunk("e = Exp(gamma) y = Mul(x, e)")
    assert planned.island("exponential") == set()
    assert "y" in planned.half()
