"""Why a node has its dtype, over graphs that the planner really plans."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from service.errors import CommandError
from tests.worker.precision.planned import parse, with_weights
from worker.precision.convert import plan_model
from worker.precision.explain import explain
from worker.precision.explanation import Explanations, NodeExplanation
from worker.precision.views.explanation import render_explanations
from worker.types import ConvertRequest

WEIGHTS = {"w": (64, 64)}
NORM = """
g (float[N,64] x) => (float[N,64] y)
<float eps = {1e-6}, float two = {2}, int64[1] last = {-1}>
{
    [proj] h = MatMul(x, w)
    [mark] f = Cast<to = 1>(h)
    [square] s = Pow(f, two)
    [mean] m = ReduceMean<axes = [-1]>(s)
    [eps_add] e = Add(m, eps)
    [root] r = Sqrt(e)
    [scale] n = Div(f, r)
    [out] y = MatMul(n, w)
}
"""
ATTENTION = """
g (float[1,8,64] x) => (float[1,8,64] y)
{
    [q] q = MatMul(x, w)
    [k] k = MatMul(x, v)
    [kt] t = Transpose<perm = [0, 2, 1]>(k)
    [scores] a = MatMul(q, t)
    [softmax] p = Softmax<axis = -1>(a)
    [values] o = MatMul(p, k)
    [out] y = MatMul(o, w)
}
"""
Ask = Callable[..., Explanations]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Explains nodes of a graph that is given as text."""

    def run(text: str, pattern: str, opset: int = 17, **options: Any) -> Explanations:
        path = tmp_path / "model.onnx"
        onnx.save(with_weights(parse(text, opset), {**WEIGHTS, "v": (64, 64)}), path)
        return explain(plan_model(ConvertRequest(path, path, **options)), pattern, path)

    return run


def one(explanations: Explanations) -> NodeExplanation:
    [node] = explanations.nodes
    return node


def test_a_node_of_an_island_names_family_hazard_and_fellows(ask: Ask) -> None:
    node = one(ask(NORM, "mean"))
    assert (node.op, node.dtype, node.cause) == ("ReduceMean", "fp32", "island")
    assert node.island is not None
    assert node.island.family == "normalization"
    assert "squares overflow" in node.island.hazard
    assert set(node.island.nodes) == {"square", "mean", "eps_add", "root", "scale"}


def test_a_node_of_a_core_names_the_core(ask: Ask) -> None:
    node = one(ask(ATTENTION, "softmax"))
    assert (node.dtype, node.cause) == ("fp16", "bounded attention core")
    assert node.core is not None
    assert (node.core.softmax, node.core.bounded) == ("softmax", True)
    assert {"scores", "softmax", "values"} <= set(node.core.nodes)


def test_casts_are_told_on_the_side_where_they_lie(ask: Ask) -> None:
    square, proj = one(ask(NORM, "square")), one(ask(NORM, "proj"))
    [read, exponent] = square.inputs
    assert (read.name, read.source, read.before, read.made, read.read) == ("h", "MatMul proj", "fp32", "fp16", "fp32")
    assert read.cast
    assert (exponent.source, exponent.read, exponent.cast) == ("weight", "fp32", False)
    [public, weight] = proj.inputs
    assert (public.source, public.made, public.read, public.cast) == ("input", "fp32", "fp16", True)
    assert (weight.source, weight.read, weight.cast) == ("weight", "fp16", False)
    assert {(reader.node, reader.read, reader.cast) for reader in proj.outputs[0].readers} == {
        ("square", "fp32", True),
        ("scale", "fp32", True),
    }


def test_an_output_of_the_model_keeps_its_dtype(ask: Ask) -> None:
    [output] = one(ask(NORM, "out")).outputs
    assert (output.before, output.made, output.public) == ("fp32", "fp16", True)


def test_a_read_through_a_marker_is_told(ask: Ask) -> None:
    assert one(ask(NORM, "square")).inputs[0].note == "read through a Cast to FP32 in the upload"


@pytest.mark.parametrize(
    ("text", "pattern", "asked", "option", "effect"),
    [
        (NORM, "square", {}, "--keep-trunk square", "fp16, with its hazard: squares overflow"),
        (NORM, "proj", {}, "--keep-fp32 proj", "fp32: requested: matches 'proj'"),
        (NORM, "proj", {"keep_fp32": ("proj",)}, "without --keep-fp32", "fp16"),
        (NORM, "square", {"keep_trunk": ("square",)}, "without --keep-trunk", "fp32: normalization"),
        (ATTENTION, "softmax", {}, "--no-bounded-attention", "fp32: attention"),
        (ATTENTION, "softmax", {"bounded_attention": False}, "without --no-bounded-attention", "fp16"),
        (NORM, "out", {}, "--mode full", "fp32: explicit FP32"),
    ],
)
def test_options_that_change_the_dtype_are_told(
    ask: Ask, text: str, pattern: str, asked: dict[str, Any], option: str, effect: str
) -> None:
    found = {found.option: found.effect for found in one(ask(text, pattern, **asked)).options}
    assert found[option].startswith(effect)


@pytest.mark.parametrize(("text", "pattern"), [(NORM, "square"), (NORM, "proj"), (ATTENTION, "softmax")])
def test_an_option_does_what_it_says(ask: Ask, text: str, pattern: str) -> None:
    before = one(ask(text, pattern))
    keeps = {"--keep-trunk": "keep_trunk", "--keep-fp32": "keep_fp32"}
    flag, _, glob = before.options[0].option.partition(" ")
    after = one(ask(text, pattern, **{keeps[flag]: (glob,)}))
    assert {before.dtype, after.dtype} == {"fp16", "fp32"}


def test_an_option_without_effect_is_not_told(ask: Ask) -> None:
    assert not [found for found in one(ask(NORM, "square")).options if "attention" in found.option]


def test_an_operator_without_a_half_form_names_the_opset_that_has_one(ask: Ask) -> None:
    text = """
    g (float[1,4,8] x, bool c) => (float[1,4,8] y)
    {
        y = If(c) <then_branch = t () => (float[1,4,8] a) { [conv] a = Relu(x) },
                   else_branch = e () => (float[1,4,8] b) { b = Identity(x) }>
    }
    """
    node = one(ask(text, "conv", opset=12, trunk="bf16"))
    assert (node.dtype, node.cause) == ("fp32", "no half form")
    assert [found.option for found in node.options] == ["export the model at opset 13 or later"]


def test_what_families_declined_beside_it_is_told(ask: Ask) -> None:
    declined = {(finding.kind, finding.where) for finding in one(ask(ATTENTION, "scores")).declined}
    assert ("softmax", "softmax") in declined


@pytest.mark.parametrize(
    ("pattern", "nodes"),
    [
        ("proj", ["proj"]),
        ("MatMul", ["proj", "out"]),
        ("*o*", ["proj", "root", "out"]),
        ("h", ["proj"]),
        ("eps", ["eps_add"]),
        ("x", ["proj"]),
        ("w", ["proj", "out"]),
    ],
)
def test_nodes_are_named_by_name_operator_glob_or_value(ask: Ask, pattern: str, nodes: list[str]) -> None:
    assert [node.node for node in ask(NORM, pattern).nodes] == nodes


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("EPS_", "'eps_add'"),
        ("SQUAER", "'square'"),
        ("sqare", "'square'"),
        ("Div1", "'Div'"),
        ("zzzzzzzz", "leave it out"),
        ("", "leave it out"),
        ("mark", "Casts of FP32 to FP32 taken out"),
    ],
)
def test_an_unknown_name_says_what_is_close(ask: Ask, pattern: str, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        ask(NORM, pattern)


def test_integers_have_nothing_to_decide(ask: Ask) -> None:
    text = "g (int64[4] i) => (int64[4] j) { [add] j = Add(i, i) }"
    node = one(ask(text, "add"))
    assert (node.dtype, node.cause, node.options) == ("none", "no FP32 values", ())
    assert node.inputs[0].before == "int64"


def test_text_has_every_part(ask: Ask) -> None:
    text = render_explanations(ask(NORM, "square"))
    for words in (
        "square: Pow (opset 17)",
        "fp32, because of: island",
        "hazard: squares overflow",
        "with mean, eps_add, root, scale",
        "h from MatMul proj: made in fp16, cast to fp32",
        "read by ReduceMean mean in fp32",
        "--keep-trunk square -> fp16",
    ):
        assert words in text


def test_many_nodes_are_a_line_each(ask: Ask) -> None:
    lines = render_explanations(ask(NORM, "*")).splitlines()
    assert lines[0] == "*: 7 nodes, 5 of them FP32; name one for more"
    assert len(lines) == 8


def test_the_text_cannot_steer_the_terminal(ask: Ask) -> None:
    text = render_explanations(ask(NORM.replace("[square]", '["\x1b[2J\u202e"]'), "Pow"))
    assert text.startswith("\\x1b[2J\\u202e: Pow")
    assert not {"\x1b", "\u202e"} & set(text)
