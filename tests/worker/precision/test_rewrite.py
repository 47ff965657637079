"""The converted graph: casts where they must be and nowhere else, public values as they were, weights as read."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from tests.worker.precision.conftest import Convert
from tests.worker.precision.planned import parse, with_weights

FLOAT, HALF, BFLOAT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
W = {"w": (64, 64)}
Change = Callable[[np.ndarray], object]
X = "float[2,64] x"
Y = "float[2,64] y"


def public(model: onnx.ModelProto) -> list[tuple[str, int]]:
    return [(value.name, value.type.tensor_type.elem_type) for value in (*model.graph.input, *model.graph.output)]


# --- casts -----------------------------------------------------------------------------------------------------------


def test_a_value_is_cast_once_for_all_its_readers(convert_text: Convert) -> None:
    found = convert_text(f"g ({X}) => ({Y}) {{ a = MatMul(x, w) b = MatMul(x, w) y = Add(a, b) }}", weights=W)
    assert found.casts().count(("x", HALF)) == 1
    assert found.report.counts.casts_added == len(found.casts()) == 2


def test_the_cast_of_an_input_comes_first_and_that_of_an_output_last(convert_text: Convert) -> None:
    found = convert_text(f"g ({X}) => ({Y}) {{ a = Transpose(x) b = Transpose(a) y = MatMul(b, w) }}", weights=W)
    assert [node.op_type for node in found.nodes()][-2:] == ["MatMul", "Cast"]
    assert found.report.counts.casts_added == 2


def test_adjacent_islands_have_one_pair_of_casts_around_them_all(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) <float big = {{300}}, float bigger = {{90000}}> "
        "{ h = MatMul(x, w) a = Mul(h, big) b = Mul(a, big) c = Div(b, bigger) y = MatMul(c, w) }",
        weights=W,
        keep_fp32=("Mul", "Div"),
    )
    assert [node.op_type for node in found.nodes()] == [
        *("Cast", "MatMul", "Cast", "Mul", "Mul", "Div", "Cast", "MatMul", "Cast"),
    ]


@pytest.mark.parametrize("to", [FLOAT, HALF])
def test_a_cast_of_the_upload_makes_what_its_readers_want(convert_text: Convert, to: int) -> None:
    body = f"a = Cast<to = 1>(ids) b = MatMul(a, w) y = {'Identity(b)' if to == HALF else 'Softmax(b)'}"
    found = convert_text(f"g (uint8[2,64] ids) => ({Y}) {{ {body} }}", weights=W)
    assert found.casts()[0] == ("ids", HALF)


def test_a_cast_that_the_plan_makes_superfluous_is_gone(convert_text: Convert) -> None:
    found = convert_text(
        f"g (float16[2,64] x) => ({Y}) {{ a = Cast<to = 1>(x) y = MatMul(a, w) }}",
        weights=W,
    )
    assert [node.op_type for node in found.nodes()] == ["MatMul", "Cast"]
    assert found.report.counts.casts_removed == 1


def test_casts_to_fp32_that_did_nothing_are_gone(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) {{ a = Cast<to = 1>(x) b = MatMul(a, w) c = Cast<to = 1>(b) y = MatMul(c, w) }}", weights=W
    )
    assert found.casts() == [("x", HALF), (found.nodes("Cast")[1].input[0], FLOAT)]


def test_shape_reads_what_is_there_and_needs_no_cast(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) {{ a = MatMul(x, w) s = Shape(a) b = Reshape(a, s) y = MatMul(b, w) }}", weights=W
    )
    assert found.report.counts.casts_added == 2


# --- public values ---------------------------------------------------------------------------------------------------

INTERFACES = {
    "an output that is read inside": (f"g ({X}) => ({Y}, float[2,64] z) {{ y = MatMul(x, w) z = MatMul(y, w) }}"),
    "an output inside an island": (
        f"g ({X}) => ({Y}, float[2,64] p) {{ a = MatMul(x, w) p = Softmax(a) y = MatMul(p, w) }}"
    ),
    "an input that is an output": f"g ({X}) => (float[2,64] x, {Y}) {{ y = MatMul(x, w) }}",
    "a weight that is an output": f"g ({X}) => ({Y}, float[64,64] w) {{ y = MatMul(x, w) }}",
    "one value that two outputs repeat": f"g ({X}) => ({Y}, float[2,64] z) {{ y = MatMul(x, w) z = Identity(y) }}",
    "an output before the trunk": f"g ({X}) => ({Y}, float[2,64] z) {{ z = Neg(x) y = MatMul(z, w) }}",
    "half in, half out": (
        "g (float16[2,64] x) => (float16[2,64] y) { a = Cast<to = 1>(x) b = MatMul(a, w) y = Cast<to = 10>(b) }"
    ),
}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("text", INTERFACES.values(), ids=INTERFACES)
def test_public_values_keep_names_order_and_dtypes(convert_text: Convert, text: str, trunk: str) -> None:
    found = convert_text(text, weights=W, trunk=trunk)
    assert public(found.model) == public(onnx.load(found.source))
    assert found.report.counts.half_tensors > 0


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("", "", ""), ("same", "same", "same")], ids=["none", "the same"])
def test_islands_do_not_depend_on_node_names(convert_model: Convert, names: tuple[str, ...]) -> None:
    model = parse(f"g ({X}) => ({Y}) {{ a = MatMul(x, w) p = Softmax(a) y = MatMul(p, w) }}")
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    found = convert_model(with_weights(model, W))
    assert found.report.islands_by_family == {"softmax": 1}
    assert found.report.islands[0].op_types == {"Softmax": 1}


def test_new_names_keep_clear_of_those_that_are_taken(convert_text: Convert) -> None:
    found = convert_text(
        f"g (float[2,64] x, float[2,64] x_fp16) => ({Y}) {{ a = MatMul(x, w) y = Add(a, x_fp16) }}", weights=W
    )
    assert "x_fp16_2" in {name for node in found.nodes() for name in node.input}


# --- subgraphs -------------------------------------------------------------------------------------------------------

BODIES = {
    "If": (
        f"g (bool c, {X}) => ({Y}) {{ h = MatMul(x, w) r = If (c) <"
        "then_branch = t () => (float[2,64] p) { p = MatMul(h, w) }, "
        "else_branch = e () => (float[2,64] q) { q = Identity(h) }> y = Add(r, h) }"
    ),
    "If, a branch that gives an outer value's name again": (
        f"g (bool c, {X}) => ({Y}) {{ h = MatMul(x, w) y = If (c) <"
        "then_branch = t () => (float[2,64] p) { a = MatMul(h, w) p = Add(a, a) }, "
        "else_branch = e () => (float[2,64] p) { a = Neg(h) p = Add(a, a) }> }"
    ),
    "Loop": (
        f"g (int64 n, bool go, {X}) => ({Y}) {{ y = Loop (n, go, x) <body = b (int64 i, bool k, float[2,64] v) => "
        "(bool o, float[2,64] u) { o = Identity(k) a = MatMul(v, w) u = Tanh(a) }> }"
    ),
    "If in a Loop": (
        f"g (int64 n, bool go, {X}) => ({Y}) {{ y = Loop (n, go, x) <body = b (int64 i, bool k, float[2,64] v) => "
        "(bool o, float[2,64] u) { o = Identity(k) a = MatMul(v, w) u = If (k) <"
        "then_branch = t () => (float[2,64] p) { p = MatMul(a, w) }, "
        "else_branch = e () => (float[2,64] q) { q = Identity(a) }> }> }"
    ),
}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("text", BODIES.values(), ids=BODIES)
def test_bodies_are_converted_with_their_casts_inside(convert_text: Convert, text: str, trunk: str) -> None:
    found = convert_text(text, weights=W, trunk=trunk)
    weights = found.weights()
    products = found.nodes("MatMul")
    assert products
    assert all(weights[node.input[1]] in (HALF, BFLOAT) for node in products)
    assert public(found.model) == public(onnx.load(found.source))


def test_the_body_of_a_scan_stays_fp32_since_tensorrt_builds_no_half_there(convert_text: Convert) -> None:
    found = convert_text(
        "g (float[64] s, float[4,64] x) => (float[64] f, float[4,64] y) { f, y = Scan (s, x) <num_scan_inputs = 1, "
        "body = b (float[64] p, float[64] v) => (float[64] q, float[64] u) { a = MatMul(v, w) q = Add(p, a) "
        "u = Identity(q) }> }",
        weights=W,
    )
    assert found.weights()["w"] == FLOAT
    assert found.report.counts.half_tensors == 0


# --- weights ---------------------------------------------------------------------------------------------------------


def test_a_weight_that_only_the_trunk_reads_keeps_its_name_and_is_rounded(convert_text: Convert) -> None:
    found = convert_text(f"g ({X}) => ({Y}) {{ y = MatMul(x, w) }}", weights=W)
    assert found.weights() == {"w": HALF}
    before = numpy_helper.to_array(onnx.load(found.source).graph.initializer[0])
    np.testing.assert_array_equal(numpy_helper.to_array(found.model.graph.initializer[0]), before.astype(np.float16))


def test_a_weight_that_island_and_trunk_read_exists_in_both_dtypes(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) {{ a = MatMul(x, w) b = LayerNormalization(a, g) c = MatMul(b, w) d = Mul(c, g) "
        "y = MatMul(d, w) }",
        weights={**W, "g": (64,)},
    )
    assert found.weights() == {"w": HALF, "g": FLOAT, "g_fp16": HALF}


def test_a_weight_beyond_the_range_keeps_its_reader_fp32_and_is_told(convert_text: Convert) -> None:
    text = f"g ({X}) => ({Y}) <float big = {{100000}}> {{ a = MatMul(x, w) b = Mul(a, big) y = MatMul(b, w) }}"
    found = convert_text(text, weights=W)
    assert found.weights()["big"] == FLOAT
    assert found.findings("a constant that half cannot hold") == ["Mul:b"]
    assert convert_text(text, weights=W, trunk="bf16").weights()["big"] == BFLOAT


def test_a_weight_that_rounding_takes_away_keeps_its_reader_fp32(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) <float small = {{1e-9}}> {{ a = MatMul(x, w) b = Mul(a, small) y = MatMul(b, w) }}",
        weights=W,
    )
    assert found.weights()["small"] == FLOAT
    assert "100%" in next(one.detail for one in found.report.findings if one.where == "Mul:b")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda w: w.__setitem__((3, 5), 1e5), "a constant that half cannot hold"),
        (lambda w: w.__imul__(1e-9), "a constant that half cannot hold"),
        (lambda w: w.__setitem__((3, 5), np.nan), "non-finite-weights"),
    ],
    ids=["one value beyond the range", "all lost to rounding", "not a number"],
)
def test_a_large_weight_is_judged_by_each_of_its_values(convert_model: Convert, change: Change, kind: str) -> None:
    model = with_weights(
        parse(f"g ({X}) => ({Y}) {{ a = MatMul(x, v) b = MatMul(a, w) y = MatMul(b, v) }}"), {"v": (64, 64)}
    )
    values = np.random.default_rng(1).normal(0, 0.125, (64, 64)).astype(np.float32)
    change(values)
    model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    found = convert_model(model)
    assert found.findings(kind)
    assert found.weights()["v"] == HALF
    assert (found.weights()["w"] == FLOAT) is (kind != "non-finite-weights")
    assert sorted(path.name for path in found.target.parent.iterdir()) == ["model.converted.onnx", "model.onnx"]


def test_bounds_beyond_the_range_are_saturated(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) <float low = {{-1e9}}, float high = {{1e9}}> "
        "{ a = MatMul(x, w) b = Clip(a, low, high) y = MatMul(b, w) }",
        weights=W,
    )
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in found.model.graph.initializer}
    assert (values["low"], values["high"]) == (-65504, 65504)
    assert found.findings("saturated") == ["high", "low"]


def test_infinite_weights_are_told(convert_text: Convert) -> None:
    found = convert_text(
        f"g ({X}) => ({Y}) <float[2,1] low = {{-inf, 0}}> {{ a = MatMul(x, w) b = Max(a, low) y = MatMul(b, w) }}",
        weights=W,
    )
    assert found.findings("non-finite-weights") == ["low"]


def test_a_default_that_callers_may_override_stays_an_fp32_input(convert_text: Convert) -> None:
    text = f"g ({X}, float[64,64] w) => ({Y}) {{ y = MatMul(x, w) }}"
    found = convert_text(text, weights=W)
    assert found.weights() == {"w": FLOAT}
    assert ("w", HALF) in found.casts()
    assert [value.name for value in found.model.graph.input] == ["x", "w"]


def test_before_ir_4_it_is_a_constant_and_rounded(convert_text: Convert) -> None:
    found = convert_text(f"g ({X}, float[64,64] w) => ({Y}) {{ y = MatMul(x, w) }}", 9, W, 3)
    assert found.weights() == {"w": HALF}
    assert [value.name for value in found.model.graph.input] == ["x"]


# --- what is met in real files ---------------------------------------------------------------------------------------

ODD = {
    "functions": (
        f'g ({X}) => ({Y}) {{ a = acme.twice(x) y = MatMul(a, w) }} <domain: "acme", opset_import: ["": 17]> '
        "twice (p) => (q) { q = Add(p, p) }"
    ),
    "sequences": (
        f"g ({X}) => ({Y}) {{ a = MatMul(x, w) s = SequenceConstruct(a, a) b = ConcatFromSequence<axis = 0>(s) "
        "c = MatMul(b, w) y, z = Split<axis = 0>(c) }"
    ),
    "doubles": (
        f"g ({X}) => ({Y}) {{ a = MatMul(x, w) d = Cast<to = 11>(a) e = Mul(d, d) f = Cast<to = 1>(e) "
        "b = Identity(f) y = MatMul(a, w) }"
    ),
    "an empty tensor": (
        f"g ({X}) => ({Y}) <float[0,64] none = {{}}> {{ a = Concat<axis = 0>(x, none) y = MatMul(a, w) }}"
    ),
    "a scalar": f"g ({X}, float s) => ({Y}) {{ a = MatMul(x, w) y = Mul(a, s) }}",
    "quantised weights": (
        f"g ({X}) => ({Y}) <float scale = {{0.1}}, int8 zero = {{0}}> {{ a = MatMul(x, w) "
        "q = QuantizeLinear(a, scale, zero) d = DequantizeLinear(q, scale, zero) y = MatMul(d, w) }"
    ),
    "a node without float outputs": f"g ({X}) => ({Y}) {{ a = MatMul(x, w) b = IsNaN(a) y = Where(b, x, a) }}",
    "an optional input that is left out": (
        f"g ({X}) => ({Y}) <float high = {{6}}> {{ a = MatMul(x, w) b = Clip(a, , high) y = MatMul(b, w) }}"
    ),
    "an output that is left out": (
        f"g ({X}, int64[1] n) => ({Y}, int64[2,k] i) {{ a = MatMul(x, w) k, i = TopK<axis = 1>(a, n) "
        "y = MatMul(a, w) }"
    ),
}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_graphs_convert_in_each_mode(convert_text: Convert, text: str, mode: str, trunk: str) -> None:
    found = convert_text(text, weights=W, mode=mode, trunk=trunk)
    assert all(found.weights()[node.input[1]] != FLOAT for node in found.nodes("MatMul"))


def test_a_custom_operator_stays_fp32_with_its_declaration(convert_text: Convert) -> None:
    text = f"g ({X}) => ({Y}) <float[2,64] b> {{ a = MatMul(x, w) b = acme.Foo(a) y = MatMul(b, w) }}"
    found = convert_text(text, weights=W)
    assert [value.name for value in found.model.graph.value_info] == ["b"]
    assert found.findings("no half form") == ["Foo:b"]


def test_scales_of_a_resize_stay_fp32_beside_a_half_image(convert_text: Convert) -> None:
    found = convert_text(
        "g (float[1,4,8,8] x) => (float[1,4,16,16] y) <float[4] k = {1,1,2,2}, int64[4] s = {1,4,1,1}> "
        "{ h = Conv(x, c) r = Resize(h, , k) t = Reshape(k, s) z = Mul(r, t) y = Conv(z, c) }",
        weights={"c": (4, 4, 1, 1)},
    )
    assert found.weights() == {"k": FLOAT, "k_fp16": HALF, "s": TensorProto.INT64, "c": HALF}


# --- opsets ----------------------------------------------------------------------------------------------------------

CONV = "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Conv<pads = [1,1,1,1]>(x, k) }"
KERNEL = {"k": (4, 4, 3, 3)}


@pytest.mark.parametrize("opset", [13, 17])
def test_the_opset_is_raised_where_the_trunk_dtype_needs_it(convert_text: Convert, opset: int) -> None:
    found = convert_text(CONV, opset, KERNEL, trunk="bf16")
    assert found.model.opset_import[0].version == 22
    assert found.weights() == {"k": BFLOAT}
    assert found.findings("opset raised") == ["model"]


def test_an_opset_that_will_do_stays(convert_text: Convert) -> None:
    found = convert_text(CONV, 13, KERNEL)
    assert found.model.opset_import[0].version == 13
    assert found.findings("opset raised") == []


def test_where_the_opset_cannot_be_raised_the_node_stays_fp32_and_says_so(convert_text: Convert) -> None:
    text = (
        "g (bool c, float[1,4,8,8] x) => (float[1,4,8,8] y) { a = If (c) <then_branch = t () => (float[1,4,8,8] p) "
        "{ p = Neg(x) }, else_branch = e () => (float[1,4,8,8] q) { q = Abs(x) }> y = Conv<pads = [1,1,1,1]>(a, k) }"
    )
    found = convert_text(text, 17, KERNEL, trunk="bf16")
    assert found.weights() == {"k": FLOAT}
    assert found.report.counts.half_tensors == 0


# --- the same again --------------------------------------------------------------------------------------------------

WHOLE = (
    "g (float[1,8,64] x, int64[1,8] ids) => (float[1,8,64] y) "
    "<int64[1] last = {-1}, float two = {2}, float eps = {1e-6}> "
    "{ h = MatMul(x, w) s = Pow(h, two) m = ReduceMean<axes = [-1]>(s) e = Add(m, eps) r = Sqrt(e) n = Div(h, r) "
    "f = Cast<to = 1>(ids) u = Unsqueeze(f, last) a = Mul(u, freq) c = Cos(a) q = Mul(n, c) "
    "t = Transpose<perm = [0, 2, 1]>(q) z = MatMul(q, t) p = Softmax(z) o = MatMul(p, h) y = MatMul(o, w) }"
)
WHOLE_WEIGHTS = {**W, "freq": (64,)}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
def test_converting_a_converted_model_changes_nothing(
    convert_text: Convert, convert_model: Convert, mode: str, trunk: str
) -> None:
    first = convert_text(WHOLE, weights=WHOLE_WEIGHTS, mode=mode, trunk=trunk)
    second = convert_model(first.model, "again", mode=mode, trunk=trunk)
    assert second.report.counts.casts_added == 0
    assert list(second.model.graph.initializer) == list(first.model.graph.initializer)
    assert [node.op_type for node in second.nodes()] == [node.op_type for node in first.nodes()]


def test_the_same_model_and_options_give_the_same_bytes(convert_text: Convert, convert_model: Convert) -> None:
    first = convert_text(WHOLE, weights=WHOLE_WEIGHTS)
    second = convert_model(onnx.load(first.source), "again")
    assert first.target.read_bytes() == second.target.read_bytes()


@pytest.mark.parametrize("options", [{"keep_fp32": ("*",)}, {"mode": "none"}], ids=["keep_fp32", "none"])
def test_a_model_that_is_to_stay_fp32_is_copied_byte_for_byte(
    convert_text: Convert, options: dict[str, object]
) -> None:
    found = convert_text(WHOLE, weights=WHOLE_WEIGHTS, **options)
    assert found.target.read_bytes() == found.source.read_bytes()
    assert found.report.counts.casts_added == 0
