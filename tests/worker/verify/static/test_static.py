from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from service.errors import CheckFailed
from worker.graph.index import build_index
from worker.graph.load import load
from worker.verify.static import check_structure, check_types

Write = Callable[..., Path]

SOURCE = "g (float[n, 4] x) => (float[n, 4] y) { [square] s = Mul(x, x) [out] y = Sqrt(s) }"
GOOD = """g (float[m, 4] x) => (float[m, 4] y) {
    h = Cast<to = 10>(x) [square] s = Mul(h, h) [out] r = Sqrt(s) y = Cast<to = 1>(r) }"""


def test_a_sound_conversion_passes(write: Write) -> None:
    check_structure(write(SOURCE, "a.onnx"), write(GOOD, "b.onnx"))


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (("Mul(h, h)", "Mul(h, x)"), "node name: square"),
        (("Mul(h, h)", "Mul(h, missing)"), "missing"),
        (("[m, 4] x", "[m, 4] x, float[1] z"), r"the inputs were \['x'\] and are now \['x', 'z'\]"),
        (("float[m, 4] y", "float[m, 5] y"), "y"),
        (("=> (float[m, 4] y)", "=> (float[m, 4] y, float16[m, 4] r)"), r"the outputs were \['y'\]"),
        (("Cast<to = 10>(x)", "Cast<to = 7>(x)"), "node name: out"),
    ],
)
def test_faults_name_what_is_wrong(write: Write, replace: tuple[str, str], message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_structure(write(SOURCE, "a.onnx"), write(GOOD.replace(*replace), "b.onnx"))


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (
            ("Mul(h, h)", "Mul(h, x)"),
            r"'square' \(Mul\) takes 'x' as tensor\(float\), where tensor\(float16\) is needed",
        ),
        (
            ("Cast<to = 10>(x)", "Cast<to = 7>(x)"),
            r"'out' \(Sqrt\) takes 's' as tensor\(int64\); its schema at opset 20",
        ),
        (("Mul(h, h)", "acme.Twist(c) c = Cast<to = 7>(h)"), r"not fully typed: .*'square' \(acme::Twist\)"),
    ],
)
def test_types_are_checked_node_by_node(write: Write, replace: tuple[str, str], message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_types(build_index(load(write(GOOD.replace(*replace)))))


def test_public_dtypes_may_not_change(write: Write) -> None:
    halved = "g (float16[m, 4] x) => (float16[m, 4] y) { s = Mul(x, x) y = Sqrt(s) }"
    with pytest.raises(CheckFailed, match=r"input 'x' was .*tensor\(float\).* and is now .*float16"):
        check_structure(write(SOURCE, "a.onnx"), write(halved, "b.onnx"))


def test_a_negative_size_in_the_source_is_an_unknown_one(write: Write, tmp_path: Path) -> None:
    source = onnx.load(write(SOURCE))
    source.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(source, tmp_path / "negative.onnx")
    check_structure(tmp_path / "negative.onnx", write(GOOD, "b.onnx"))


def test_nodes_before_what_they_read_are_refused(write: Write, tmp_path: Path) -> None:
    model = onnx.load(write(GOOD))
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([*nodes[1:], nodes[0]])
    onnx.save(model, tmp_path / "unsorted.onnx")
    with pytest.raises(CheckFailed, match="topologically sorted"):
        check_structure(write(SOURCE, "a.onnx"), tmp_path / "unsorted.onnx")


def test_what_shape_inference_refuses_in_the_source_too_is_no_fault(write: Write) -> None:
    """ONNX cannot infer through its own definition of this operator."""
    path = write("g (float[1, 2, 3, 3] x) => (float[1, 2, 3, 3] y) { y = MeanVarianceNormalization(x) }")
    check_structure(path, path)


def test_weights_of_any_size_are_left_where_they_are(tmp_path: Path) -> None:
    graph = onnx.parser.parse_graph("g (float[n, 500] x) => (float[n, 3] y) { y = MatMul(x, w) }")
    graph.initializer.append(onnx.helper.make_tensor("w", 1, [500, 3], bytes(6000), raw=True))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, location="e.data")
    check_structure(tmp_path / "m.onnx", tmp_path / "e.onnx")
