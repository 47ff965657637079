"""Facts of a graph: types, casts that do nothing, what is static and what is dense."""

import onnx
import pytest

from worker.graph.dims import name_placeholders
from worker.graph.graph import Graph, analyze
from worker.graph.load import prepare
from worker.graph.names import NameSource
from worker.graph.opset import raise_opset
from worker.graph.skeleton import Skeleton

FLOAT = "tensor(float)"


def skeleton(text: str, opset: int = 17) -> Skeleton:
    found = Skeleton(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "acme": 1]> {text}'))
    prepare(found)
    return found


def graph(text: str, opset: int = 17) -> Graph:
    return analyze(skeleton(text, opset))


TYPES = {
    "shared variable": ("a = Neg(x)", FLOAT),
    "attribute": ("a = Cast<to = 10>(x)", "tensor(float16)"),
    "like another": ("a = CastLike(i, x)", FLOAT),
    "pinned by the schema": ("a = Shape(x)", "tensor(int64)"),
    "fill": ("s = Shape(x) a = ConstantOfShape(s)", FLOAT),
    "fill with a value": ("s = Shape(x) a = ConstantOfShape<value = int32[1] {1}>(s)", "tensor(int32)"),
    "random like": ("a = RandomNormalLike<dtype = 16>(x)", "tensor(bfloat16)"),
    "an unknown operator of floats": ("a = acme.Foo(x)", FLOAT),
    "a sequence": ("a = SequenceConstruct(x, x)", "seq(tensor(float))"),
    "of a sequence": ("s = SequenceConstruct(x, x) n = Constant<value_int = 0>() a = SequenceAt(s, n)", FLOAT),
    "branches": (
        "a = If (c) <then_branch = t () => (float[2] r) { r = Neg(x) }, "
        "else_branch = e () => (float[2] r) { r = Abs(x) }>",
        FLOAT,
    ),
}


@pytest.mark.parametrize(("body", "expected"), TYPES.values(), ids=TYPES)
def test_types_follow_schemas_attributes_and_bodies(body: str, expected: str) -> None:
    found = graph(f"g (float[2] x, int64[2] i, bool c) => (float[2] y) {{ {body} y = Abs(x) }}")
    assert found.types["a"] == expected


def test_casts_that_do_nothing_go_and_their_readers_are_marked() -> None:
    found = graph(
        "g (float[2] x) => (float[2] y) { a = Cast<to = 1>(x) b = Cast<to = 1>(a) c = Neg(b) d = Add(c, x) y = Abs(d) }"
    )
    assert [node.op for node in found.nodes] == ["Neg", "Add", "Abs"]
    assert found.stripped_casts == 2
    assert found.marked == {(0, 0)}


@pytest.mark.parametrize(
    ("dtype", "marked"), [("float16", {(1, 0)}), ("double", {(1, 0)}), ("int64", set()), ("bool", set())]
)
def test_a_cast_to_fp32_is_a_marker_only_of_what_was_a_float(dtype: str, marked: set[tuple[int, int]]) -> None:
    found = graph(f"g ({dtype}[2] x) => (float[2] y) {{ a = Cast<to = 1>(x) y = Neg(a) }}")
    assert found.marked == marked


def test_a_cast_that_is_an_output_stays() -> None:
    found = graph("g (float[2] x) => (float[2] y) { y = Cast<to = 1>(x) }")
    assert [node.op for node in found.nodes] == ["Cast"]


@pytest.mark.parametrize(
    ("body", "is_static"),
    [
        ("a = Neg(k)", True),
        ("h = Neg(k) a = Add(h, k)", True),
        ("a = Add(k, x)", False),
        ("s = Shape(k) a = RandomNormalLike(k)", False),
        ("a = RandomNormal<shape = [2]>()", False),
    ],
)
def test_static_values_depend_on_constants_alone(body: str, is_static: bool) -> None:
    found = graph(f"g (float[2] x) => (float[2] y) <float[2] k = {{1, 2}}> {{ {body} y = Add(a, x) }}")
    assert ("a" in found.static) is is_static


@pytest.mark.parametrize(
    ("body", "is_dense"),
    [
        ("a = MatMul(x, w)", True),
        ("b = MatMul(x, w) a = Tanh(b)", True),
        ("a = Tanh(x)", False),
        ("a = MatMul(p, q)", False),
        ('a = Einsum<equation = "i,j->ij">(p1, p1)', False),
        ('a = Einsum<equation = "ij,jk->ik">(x, w)', True),
        ("b = MatMul(x, w) a = Shape(b)", False),
        ("h = Cast<to = 10>(x) v = Cast<to = 10>(w) b = MatMul(h, v) a = Cast<to = 1>(b)", True),
        (
            "a = If (c) <then_branch = t () => (float[2,64] p) { p = MatMul(x, w) }, "
            "else_branch = e () => (float[2,64] q) { q = Neg(x) }>",
            True,
        ),
    ],
    ids=[
        *("product", "after a product", "elementwise", "three coordinates", "outer product", "Einsum", "shape"),
        *("product in half", "product in a branch"),
    ],
)
def test_activations_depend_on_a_long_dot_product(body: str, is_dense: bool) -> None:
    found = graph(
        "g (float[2,64] x, float[64,64] w, float[5,3] p, float[3,3] q, float[4] p1, bool c) => (float[] y) "
        f"{{ {body} y = Neg(x) }}"
    )
    assert ("a" in found.dense) is is_dense


@pytest.mark.parametrize(
    ("dim", "expected"),
    [("?", "x_dim_1"), ("*", "x_dim_1"), ("length", "length"), ("7", 7)],
)
def test_a_placeholder_of_an_input_gets_a_name_of_its_own(dim: str, expected: str | int) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }'
    )
    declared = model.graph.input[0].type.tensor_type.shape.dim[1]
    if dim.isdigit():
        declared.dim_value = int(dim)
    else:
        declared.dim_param = dim
    name_placeholders(model)
    assert (declared.dim_value or declared.dim_param) == expected


def test_fresh_names_count_up() -> None:
    source = NameSource({"a", "a_2"})
    assert [source.fresh(name) for name in ("a", "b", "a", "b")] == ["a_3", "b", "a_4", "b_2"]


def test_an_opset_is_raised_where_the_converter_can() -> None:
    found = skeleton("g (float[2] x) => (float[2] y) { y = Neg(x) }", 13)
    assert raise_opset(found, 22) is None
    assert found.model.opset_import[0].version == 22
    assert found.model.ir_version >= 10


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (float[2] x) => (float[2] y) { a = acme.Foo(x) y = Neg(a) }", "acme"),
        (
            "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] r) { r = Neg(x) }, "
            "else_branch = e () => (float[2] r) { r = Abs(x) }> }",
            "subgraphs",
        ),
    ],
    ids=["domain", "subgraph"],
)
def test_an_opset_that_cannot_be_raised_says_why_and_changes_nothing(text: str, reason: str) -> None:
    found = skeleton(text, 13)
    before = found.model.SerializeToString()
    refusal = raise_opset(found, 22)
    assert refusal is not None
    assert reason in refusal
    assert found.model.SerializeToString() == before
