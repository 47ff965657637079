"""The node that brings an error in: the first that drifts further than what it reads."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from worker.verify.emulate import emulate
from worker.verify.locate import locate
from worker.verify.types import Unverifiable
from worker.verify.watchdog import Watchdog

Write = Callable[..., Path]

SOURCE = """g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z) {{
    [one] a = Neg(x) [two] b = {two}(a) [three] c = Exp(b) [four] y = Neg(c) [aside] z = {aside}(x) }}"""
X = np.linspace(0.1, 1.0, 8, dtype=np.float32).reshape(2, 4)


def located(write: Write, outputs: tuple[str, ...] = (), **changes: str) -> tuple[str, str] | None:
    same = {"two": "Abs", "aside": "Abs"}
    source = write(SOURCE.format(**same))
    converted = write(SOURCE.format(**{**same, **changes}), "converted.onnx")
    found = locate(source, converted, emulate, {"x": X}, Watchdog(60, 8 << 30), outputs=outputs)
    return None if found is None else (found.culprit.node, found.worst.node)


def test_equal_graphs_have_nobody_to_blame(write: Write) -> None:
    assert located(write) is None


def test_the_first_node_that_differs_is_to_blame_and_not_those_it_reaches(write: Write) -> None:
    assert located(write, two="Tan") == ("two", "two")


def test_only_what_leads_to_the_output_is_looked_at(write: Write) -> None:
    assert located(write, ("y",), aside="Neg") is None
    assert located(write, ("z",), aside="Neg") == ("aside", "aside")


def test_infinities_come_first(write: Write) -> None:
    graph = """g (float[n, 4] x) => (float[n, 4] y) {{ k = Constant<value = {constant}>() {before}
               [scale] a = Mul(h, k) [back] b = Div(a, k) y = Cast<to = 1>(b) }}"""
    source = write(graph.format(constant="float {60000.0}", before="h = Identity(x)"))
    half = write(graph.format(constant="float16 {half(60000)}", before="h = Cast<to = 10>(x)"), "half.onnx")
    found = locate(source, half, emulate, {"x": 2 * X}, Watchdog(60, 8 << 30))
    assert found is not None
    assert (found.culprit.node, found.culprit.drift) == ("scale", None)
    assert "inf or NaN" in str(found.culprit)


def test_empty_tensors_and_subgraphs_are_compared(write: Write) -> None:
    text = """g (float[n, 4] x) => (float[n, 4] y) { none = Constant<value_ints = [0, 4]>()
        zero = Constant<value_ints = [0]>() axis = Constant<value_ints = [0]>() e = Slice(x, zero, zero, axis)
        t = Constant<value = bool {1}>() r = If(t) <then_branch = a () => (float[n, 4] p) { p = Neg(x) },
        else_branch = b () => (float[n, 4] q) { q = Abs(x) }> y = Concat<axis = 0>(r, e) }"""
    other = text.replace("p = Neg(x)", "p = Abs(x)")
    found = locate(write(text), write(other, "o.onnx"), emulate, {"x": X}, Watchdog(60, 8 << 30))
    assert found is not None
    assert found.culprit.op == "If"


def test_old_opsets_are_refused_with_the_reason(tmp_path: Path) -> None:
    header, path = '<ir_version: 4, opset_import: ["": 8]>', tmp_path / "old.onnx"
    onnx.save(onnx.parser.parse_model(f"{header} g (float[n] x) => (float[n] y) {{ y = Neg(x) }}"), path)
    with pytest.raises(Unverifiable, match="from opset 9 on; the model has 8"):
        locate(path, path, emulate, {"x": X}, Watchdog(60, 8 << 30))
