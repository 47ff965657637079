"""Attention cores: what is one, what is none, and when it is handed to the trunk."""

import pytest

from tests.worker.precision.planned import Planned, plan, plan_in_trunk

QKV = "q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)"
KEYS = "t = Transpose<perm = [0, 2, 1]>(k)"
PROJECTIONS = {"wq": (64, 64), "wk": (64, 64), "wv": (64, 64)}
CONSTANTS = (
    "float scale = {0.125}, float root = {0.35}, float minus_infinity = {-inf}, float lowest = {-3.4028e38}, "
    "float cap = {50}, int64[4] heads = {1,8,2,32}, int64[4] grouped = {1,2,8,32}, int64[5] five = {1,1,2,8,32}, "
    "int64[3] whole = {1,8,64}"
)
INPUTS = "bool[1,8,8] keep, float[1,8,8] bias"

CORES = {
    "no scale": (f"{QKV} {KEYS} s = MatMul(q, t) p = Softmax<axis = -1>(s) y = MatMul(p, v)", "s p y"),
    "scale after": (
        f"{QKV} {KEYS} s = MatMul(q, t) m = Mul(s, scale) p = Softmax<axis = -1>(m) y = MatMul(p, v)",
        "s m p y",
    ),
    "division by the root of the width": (
        f"{QKV} {KEYS} s = MatMul(q, t) m = Div(s, root) p = Softmax<axis = -1>(m) y = MatMul(p, v)",
        "s m p y",
    ),
    "scale before, on the queries": (
        f"{QKV} {KEYS} a = Mul(q, scale) s = MatMul(a, t) p = Softmax<axis = -1>(s) y = MatMul(p, v)",
        "s p y",
    ),
    "its root on queries and keys": (
        f"{QKV} {KEYS} a = Mul(q, root) b = Mul(t, root) s = MatMul(a, b) p = Softmax<axis = -1>(s) y = MatMul(p, v)",
        "s p y",
    ),
    "additive mask": (
        f"{QKV} {KEYS} s = MatMul(q, t) m = Mul(s, scale) a = Add(m, bias) p = Softmax<axis = -1>(a) y = MatMul(p, v)",
        "s m a p y",
    ),
    "additive mask on the left": (
        f"{QKV} {KEYS} s = MatMul(q, t) a = Add(bias, s) p = Softmax<axis = -1>(a) y = MatMul(p, v)",
        "s a p y",
    ),
    "boolean mask, -inf": (
        f"{QKV} {KEYS} s = MatMul(q, t) a = Where(keep, s, minus_infinity) p = Softmax<axis = -1>(a) y = MatMul(p, v)",
        "s a p y",
    ),
    "boolean mask made additive, with a guard against NaN": (
        f"{QKV} {KEYS} b = Where(keep, zero, lowest) s = MatMul(q, t) a = Add(s, b) p = Softmax<axis = -1>(a) "
        "n = IsNaN(p) g = Where(n, zero, p) y = MatMul(g, v)",
        "s a p g y",
    ),
    "soft cap by tanh": (
        f"{QKV} {KEYS} s = MatMul(q, t) d = Div(s, cap) h = Tanh(d) m = Mul(h, cap) p = Softmax<axis = -1>(m) "
        "y = MatMul(p, v)",
        "s d h m p y",
    ),
    "keys first": (
        f"{QKV} u = Transpose<perm = [0, 2, 1]>(q) s = MatMul(k, u) z = Transpose<perm = [0, 2, 1]>(s) "
        "p = Softmax<axis = -1>(z) y = MatMul(p, v)",
        "s z p y",
    ),
    "heads, with the scores reshaped": (
        f"{QKV} qh = Reshape(q, heads) kh = Reshape(k, heads) vh = Reshape(v, heads) "
        "qt = Transpose<perm = [0, 2, 1, 3]>(qh) kt = Transpose<perm = [0, 2, 3, 1]>(kh) "
        "vt = Transpose<perm = [0, 2, 1, 3]>(vh) s = MatMul(qt, kt) p = Softmax<axis = -1>(s) o = MatMul(p, vt) "
        "m = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(m, whole)",
        "s p o",
    ),
    "keys and values expanded for groups of queries": (
        f"{QKV} kh = Reshape(k, five) ke = Expand(kh, five) vh = Reshape(v, five) ve = Expand(vh, five) "
        "qh = Reshape(q, grouped) kr = Reshape(ke, grouped) vr = Reshape(ve, grouped) "
        "kt = Transpose<perm = [0, 1, 3, 2]>(kr) s = MatMul(qh, kt) p = Softmax<axis = -1>(s) o = MatMul(p, vr) "
        "y = Reshape(o, whole)",
        "s p o",
    ),
    "dropout at inference": (
        f"{QKV} {KEYS} s = MatMul(q, t) p = Softmax<axis = -1>(s) d = Dropout(p) y = MatMul(d, v)",
        "s p d y",
    ),
    "cross-attention": (
        f"q = MatMul(x, wq) k = MatMul(context, wk) v = MatMul(context, wv) {KEYS} s = MatMul(q, t) "
        "p = Softmax<axis = -1>(s) y = MatMul(p, v)",
        "s p y",
    ),
}

EINSUM = (
    f'{QKV} s = Einsum<equation = "bid,bjd->bij">(q, k) p = Softmax<axis = -1>(s) '
    'y = Einsum<equation = "bij,bjd->bid">(p, v)'
)

NO_CORES = {
    "router": "l = MatMul(x, wq) p = Softmax<axis = -1>(l) y = MatMul(p, wk)",
    "keys that are constants": "l = MatMul(x, wq) p = Softmax<axis = -1>(l) y = MatMul(p, bank)",
    "linear attention": (
        f"{QKV} a = Softmax<axis = -1>(q) b = Softmax<axis = 1>(k) {KEYS} c = Transpose<perm = [0, 2, 1]>(b) "
        "d = MatMul(c, v) y = MatMul(a, d)"
    ),
    "classifier": "y = Softmax<axis = -1>(x)",
    "values that are constants": (
        f"{QKV} {KEYS} s = MatMul(q, t) p = Softmax<axis = -1>(s) r = MatMul(p, bank8) y = Add(r, v)"
    ),
}


def planned(body: str, **options: object) -> Planned:
    weights = {**PROJECTIONS, "bank": (64, 64), "bank8": (8, 64)}
    return plan_in_trunk(body, 17, CONSTANTS, f"{INPUTS}, float[1,12,64] context", weights, **options)


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize(("body", "nodes"), CORES.values(), ids=CORES)
def test_a_core_is_half_from_scores_to_values(body: str, nodes: str, trunk: str) -> None:
    found = planned(body, trunk=trunk)
    assert found.cores() == [set(nodes.split())]
    assert found.half() >= set(nodes.split())


def test_a_core_by_einsum_is_half_where_einsum_has_such_a_form() -> None:
    assert planned(EINSUM, trunk="fp16").cores() == [{"s", "p", "y"}]
    in_bf16 = planned(EINSUM, trunk="bf16")
    assert in_bf16.cores() == []
    assert "has no bf16 form" in in_bf16.reason("p")


@pytest.mark.parametrize("body", NO_CORES.values(), ids=NO_CORES)
def test_what_is_no_core_says_why(body: str) -> None:
    found = planned(body)
    assert found.cores() == []
    assert found.declined("attention core")
    assert found.island("softmax")


def test_differential_attention_by_difference_of_probabilities_is_two_cores() -> None:
    found = planned(
        f"{QKV} {KEYS} s1 = MatMul(q, t) p1 = Softmax<axis = -1>(s1) s2 = MatMul(v, t) p2 = Softmax<axis = -1>(s2) "
        "m = Mul(p2, scale) d = Sub(p1, m) y = MatMul(d, v)"
    )
    assert found.cores() == [{"s1", "p1", "d", "y"}, {"s2", "p2", "m", "d", "y"}]


def test_differential_attention_by_difference_of_results_is_two_cores() -> None:
    found = planned(
        f"{QKV} {KEYS} s1 = MatMul(q, t) p1 = Softmax<axis = -1>(s1) o1 = MatMul(p1, v) s2 = MatMul(v, t) "
        "p2 = Softmax<axis = -1>(s2) o2 = MatMul(p2, v) m = Mul(o2, scale) y = Sub(o1, m)"
    )
    assert found.cores() == [{"s1", "p1", "o1"}, {"s2", "p2", "o2"}]


def test_the_attention_operator_is_a_core() -> None:
    body = f"{QKV} y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v, bias)"
    found = plan_in_trunk(body, 23, CONSTANTS, INPUTS, PROJECTIONS)
    assert found.cores() == [{"y"}]
    assert found.plan.guard == {"bias"}


def test_rotated_queries_are_cast_back_before_the_core() -> None:
    body = (
        "p = Cast<to = 1>(ids) u = Unsqueeze(p, last) a = Mul(u, freq) c = Cos(a) q = Mul(x, c) "
        "t = Transpose<perm = [0, 2, 1]>(x) s = MatMul(q, t) z = Softmax<axis = -1>(s) y = MatMul(z, x)"
    )
    found = plan_in_trunk(body, inputs="int64[1,8] ids", weights={"freq": (64,)})
    assert "q" in found.island("rotation")
    assert found.half() >= {"s", "z", "y"}


def test_unbounded_cores_stay_fp32_up_to_the_softmax_and_say_why() -> None:
    found = planned(CORES["scale after"][0], bounded_attention=False)
    assert found.island("attention") == {"s", "m", "p"}
    assert "bounded attention is off" in found.reason("p")


@pytest.mark.parametrize(("keys", "trunk", "bounded"), [
    (65536, "fp16", False), (60000, "fp16", False), (59999, "fp16", True), (65536, "bf16", True),
])  # fmt: skip
def test_a_sum_over_more_keys_than_fp16_can_count_is_not_handed_to_the_trunk(
    keys: int, trunk: str, bounded: bool
) -> None:
    found = plan(
        f"g (float[1,4,16,64] q, float[1,4,64,{keys}] k, float[1,4,{keys},64] v) => (float[] y) "
        "{ s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
        trunk=trunk,
    )
    assert bool(found.cores()) is bounded
    assert bounded or f"{keys} keys" in found.reason("p")


@pytest.mark.parametrize(("longest", "bounded"), [(4096, True), (65536, False)])
def test_the_largest_shape_of_a_profile_tells_the_number_of_keys(longest: int, bounded: bool) -> None:
    found = plan(
        "g (float[1,4,16,64] q, float[1,4,64,N] k, float[1,4,N,64] v) => (float[] y) "
        "{ s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
        max_shapes={"k": (1, 4, 64, longest), "v": (1, 4, longest, 64)},
    )
    assert bool(found.cores()) is bounded
