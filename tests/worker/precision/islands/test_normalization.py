"""Norms written out, in the spellings that exporters have for them."""

import pytest

from tests.worker.precision.planned import plan_in_trunk

RMS_NORMS = {
    "pow, axes as attribute, sqrt, div": (
        17,
        "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) v = Add(m, eps) r = Sqrt(v) n = Div(x, r) y = Mul(n, gamma)",
        "s m v r n y",
    ),
    "mul by itself, axes as input": (
        18,
        "s = Mul(x, x) m = ReduceMean(s, last) v = Add(m, eps) r = Sqrt(v) n = Div(x, r) y = Mul(n, gamma)",
        "s m v r n y",
    ),
    "reciprocal": (
        20,
        "s = Pow(x, two) m = ReduceMean(s, last) v = Add(m, eps) r = Sqrt(v) i = Reciprocal(r) n = Mul(x, i) "
        "y = Mul(n, gamma)",
        "s m v r i n y",
    ),
    "one divided by the root": (
        17,
        "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) v = Add(m, eps) r = Sqrt(v) i = Div(one, r) n = Mul(x, i) "
        "y = Mul(n, gamma)",
        "s m v r i n y",
    ),
    "power of minus one half": (
        17,
        "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) v = Add(m, eps) i = Pow(v, minus_half) n = Mul(x, i) "
        "y = Mul(n, gamma)",
        "s m v i n y",
    ),
    "gamma on the left, eps on the left": (
        17,
        "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) v = Add(eps, m) r = Sqrt(v) n = Div(x, r) y = Mul(gamma, n)",
        "s m v r n y",
    ),
    "gamma joined with the statistic first": (
        17,
        "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) v = Add(m, eps) r = Sqrt(v) i = Reciprocal(r) "
        "g = Mul(i, gamma) y = Mul(x, g)",
        "s m v r i g y",
    ),
    "no gamma": (
        17,
        "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) v = Add(m, eps) r = Sqrt(v) y = Div(x, r)",
        "s m v r y",
    ),
    "casts around, and before gamma": (
        17,
        "f = Cast<to = 1>(x) s = Pow(f, two) m = ReduceMean<axes = [-1]>(s) v = Add(m, eps) r = Sqrt(v) n = Div(f, r) "
        "c = Cast<to = 1>(n) y = Mul(c, gamma)",
        "s m v r n y",
    ),
    "sum of squares in one operator, divided by the width": (
        17,
        "s = ReduceSumSquare<axes = [-1]>(x) m = Div(s, width) v = Add(m, eps) r = Sqrt(v) n = Div(x, r) "
        "y = Mul(n, gamma)",
        "s m v r n y",
    ),
    "L2 norm, clipped and expanded": (
        17,
        "l = ReduceL2<axes = [-1]>(x) c = Clip(l, tiny) shape = Shape(x) e = Expand(c, shape) n = Div(x, e) "
        "s = Mul(n, width) y = Mul(s, gamma)",
        "l c e n s y",
    ),
    "statistic over a transposed activation": (
        17,
        "t = Transpose<perm = [0, 2, 1]>(x) s = Mul(t, t) m = ReduceMean<axes = [1]>(s) v = Add(m, eps) r = Sqrt(v) "
        "n = Div(t, r) y = Transpose<perm = [0, 2, 1]>(n)",
        "s m v r n",
    ),
}

LAYER_NORMS = {
    "one centre": (
        17,
        "m = ReduceMean<axes = [-1]>(x) c = Sub(x, m) s = Pow(c, two) q = ReduceMean<axes = [-1]>(s) v = Add(q, eps) "
        "r = Sqrt(v) n = Div(c, r) g = Mul(n, gamma) y = Add(g, beta)",
        "m c s q v r n g y",
    ),
    "a centre for the variance and one for the result": (
        17,
        "m = ReduceMean<axes = [-1]>(x) c = Sub(x, m) s = Mul(c, c) q = ReduceMean<axes = [-1]>(s) v = Add(q, eps) "
        "r = Sqrt(v) d = Sub(x, m) n = Div(d, r) g = Mul(n, gamma) y = Add(g, beta)",
        "m c s q v r d n g y",
    ),
    "mean of squares minus square of the mean": (
        17,
        "m = ReduceMean<axes = [-1]>(x) s = Mul(x, x) q = ReduceMean<axes = [-1]>(s) p = Mul(m, m) d = Sub(q, p) "
        "v = Add(d, eps) r = Sqrt(v) c = Sub(x, m) n = Div(c, r) y = Mul(n, gamma)",
        "m s q p d v r c n y",
    ),
    "scale and shift folded into the statistic": (
        17,
        "m = ReduceMean<axes = [-1]>(x) c = Sub(x, m) s = Mul(c, c) q = ReduceMean<axes = [-1]>(s) v = Add(q, eps) "
        "r = Sqrt(v) i = Reciprocal(r) g = Mul(i, gamma) a = Mul(x, g) b = Mul(m, g) d = Sub(beta, b) y = Add(a, d)",
        "m c s q v r i g a b d y",
    ),
    "guarded by max and min": (
        17,
        "m = ReduceMean<axes = [-1]>(x) c = Sub(x, m) s = Mul(c, c) q = ReduceMean<axes = [-1]>(s) u = Max(q, zero) "
        "w2 = Min(u, infinite) v = Add(w2, eps) r = Sqrt(v) i = Reciprocal(r) n = Mul(c, i) y = Mul(n, gamma)",
        "m c s q u w2 v r i n y",
    ),
    "channels first": (
        18,
        "m = ReduceMean(x, axis1) c = Sub(x, m) s = Pow(c, two) q = ReduceMean(s, axis1) v = Add(q, eps) r = Sqrt(v) "
        "n = Div(c, r) g = Mul(n, gamma) y = Add(g, beta)",
        "m c s q v r n g y",
    ),
    "groups by reshape": (
        17,
        "t = Reshape(x, groups) m = ReduceMean<axes = [2]>(t) c = Sub(t, m) s = Mul(c, c) "
        "q = ReduceMean<axes = [2]>(s) v = Add(q, eps) r = Sqrt(v) n = Div(c, r) z = Reshape(n, whole) "
        "g = Mul(z, gamma) y = Add(g, beta)",
        "m c s q v r n",
    ),
}

L2_NORMS = {
    "clip": (17, "l = ReduceL2<axes = [-1]>(x) c = Clip(l, tiny) y = Div(x, c)", "l c y"),
    "max": (17, "l = ReduceL2<axes = [-1]>(x) c = Max(l, tiny) y = Div(x, c)", "l c y"),
    "sum of squares and root": (
        13,
        "s = Mul(x, x) u = ReduceSum(s, last) r = Sqrt(u) c = Clip(r, tiny) y = Div(x, c)",
        "s u r c y",
    ),
    "clip and expand": (
        17,
        "l = ReduceL2<axes = [-1]>(x) c = Clip(l, tiny) h = Shape(x) e = Expand(c, h) y = Div(x, e)",
        "l c e y",
    ),
}

CONSTANTS = (
    "float minus_half = {-0.5}, float width = {64}, float infinite = {inf}, int64[3] groups = {1,16,32}, "
    "int64[3] whole = {1,8,64}"
)


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize(("opset", "body", "nodes"), RMS_NORMS.values(), ids=RMS_NORMS)
def test_an_rms_norm_is_fp32_from_square_to_gamma(opset: int, body: str, nodes: str, trunk: str) -> None:
    planned = plan_in_trunk(body, opset, CONSTANTS, mode="minimal", trunk=trunk)
    assert planned.island("normalization") == set(nodes.split())
    assert {"x", "output"} <= planned.half()


@pytest.mark.parametrize(("opset", "body", "nodes"), LAYER_NORMS.values(), ids=LAYER_NORMS)
def test_a_layer_norm_is_fp32_from_mean_to_beta(opset: int, body: str, nodes: str) -> None:
    planned = plan_in_trunk(body, opset, CONSTANTS, mode="minimal")
    assert planned.island("normalization") >= set(nodes.split())
    assert planned.half() >= {"x", "output"}


@pytest.mark.parametrize(("opset", "body", "nodes"), L2_NORMS.values(), ids=L2_NORMS)
def test_a_division_by_the_length_is_fp32(opset: int, body: str, nodes: str) -> None:
    assert plan_in_trunk(body, opset, CONSTANTS, mode="minimal").island("normalization") == set(nodes.split())


def test_queries_and_keys_of_cosine_attention_are_normed_in_fp32_and_multiplied_in_half() -> None:
    planned = plan_in_trunk(
        "ql = ReduceL2<axes = [-1]>(x) qc = Clip(ql, tiny) q = Div(x, qc) p = MatMul(x, w) "
        "kl = ReduceL2<axes = [-1]>(p) kc = Clip(kl, tiny) k = Div(p, kc) t = Transpose<perm = [0, 2, 1]>(k) "
        "s = MatMul(q, t) a = Softmax(s) y = MatMul(a, p)"
    )
    assert planned.island("normalization") == {"ql", "qc", "q", "kl", "kc", "k"}
    assert planned.cores() == [{"s", "a", "y"}]


def test_a_square_that_is_not_summed_is_no_norm() -> None:
    planned = plan_in_trunk("s = Pow(x, two) y = Add(s, x)")
    assert planned.islands() == set()
    assert planned.half() >= {"s", "y"}


def test_a_cube_is_no_square() -> None:
    planned = plan_in_trunk(
        "s = Pow(x, three) m = ReduceMean<axes = [-1]>(s) y = Mul(x, m)", constants="float three = {3}"
    )
    assert planned.island("normalization") == set()


def test_two_norms_are_two_islands_with_the_value_in_their_reason() -> None:
    norm = "s{0} = Mul({1}, {1}) m{0} = ReduceMean<axes = [-1]>(s{0}) r{0} = Sqrt(m{0}) n{0} = Div({1}, r{0})"
    planned = plan_in_trunk(f"{norm.format(1, 'x')} p = MatMul(n1, w) {norm.format(2, 'p')} y = Identity(n2)")
    reasons = [island.reason for island in planned.plan.islands]
    assert reasons == [f"mean of squares of {name!r}, and the scaling by it" for name in ("x", "p")]
    assert all("overflow" in island.hazard for island in planned.plan.islands)
