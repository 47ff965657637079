"""Einsums written out give what the Einsum gave."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from worker.graph.einsum import write_out_einsums

SIZES = {"b": 2, "h": 3, "i": 4, "j": 5, "d": 6, "c": 7}
WRITTEN_OUT = {
    "bhid,bhjd->bhij": ["Transpose", "MatMul"],
    "b h i j, b h j d -> b h i d": ["MatMul"],
    "bihd,bjhd->bhij": ["Transpose", "Transpose", "MatMul"],
    "bhij,bjhd->bihd": ["Transpose", "MatMul", "Transpose"],
    "ij,jd->di": ["Transpose", "Transpose", "MatMul"],
    "bid,bjd->bji": ["Transpose", "MatMul"],
    "bid,dc->bic": ["MatMul"],
    "dc,bid->bic": ["MatMul"],
    "bhid->bdhi": ["Transpose"],
}
LEFT_ALONE = [
    "i,j->ij",
    "ij->i",
    "bij,bij->b",
    "bhid,bhjd",
    "...id,...jd->...ij",
    "ii->i",
    "bijd,jc->bid",
    "ij,jd,dc->ic",
]


def model(equation: str) -> onnx.ModelProto:
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    inputs = [
        onnx.helper.make_tensor_value_info(f"x{index}", 1, [SIZES.get(letter, 2) for letter in term])
        for index, term in enumerate(terms)
    ]
    node = onnx.helper.make_node("Einsum", [value.name for value in inputs], ["y"], name="sum", equation=equation)
    output = onnx.helper.make_tensor_value_info("y", 1, None)
    graph = onnx.helper.make_graph([node], "g", inputs, [output])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def answer(model: onnx.ModelProto) -> np.ndarray:
    random = np.random.default_rng(0)
    feed = {
        value.name: random.standard_normal([dim.dim_value for dim in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
    }
    return ReferenceEvaluator(model).run(None, feed)[0]


@pytest.mark.parametrize(("equation", "ops"), WRITTEN_OUT.items(), ids=list(WRITTEN_OUT))
def test_a_product_or_permutation_is_written_out(equation: str, ops: list[str]) -> None:
    einsum, written = model(equation), model(equation)
    assert write_out_einsums(written, {"y"}) == ["y"]
    assert [node.op_type for node in written.graph.node] == ops
    assert written.graph.node[-1].name == "sum"
    np.testing.assert_allclose(answer(written), answer(einsum), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("equation", LEFT_ALONE)
def test_anything_else_is_left_alone(equation: str) -> None:
    untouched = model(equation)
    assert write_out_einsums(untouched, {"y"}) == []
    assert untouched == model(equation)


def test_only_what_is_asked_for_is_written_out() -> None:
    untouched = model("bhid,bhjd->bhij")
    assert write_out_einsums(untouched, {"z"}) == []
    assert untouched == model("bhid,bhjd->bhij")
