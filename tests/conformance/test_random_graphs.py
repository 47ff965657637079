"""Graphs that nobody would draw: whatever they hold, they convert, are valid, run, and stay close to FP32."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper

from tests.conformance.operator_suite import run
from tests.conformance.proof import check_close, converted, emulated

WIDTH = 32
SHAPE = f"float[4,{WIDTH}]"

UNARY = (
    "MatMul({a}, w)", "Tanh({a})", "Relu({a})", "Neg({a})", "Identity({a})", "Softmax<axis = -1>({a})",
    "LayerNormalization({a}, gamma)", "Mul({a}, half)", "Add({a}, gamma)", "Clip({a}, low, high)", "Cast<to = 1>({a})",
    "Concat<axis = 1>({a}_l, {a}_r)", "Sigmoid({a})", "Gather<axis = 0>({a}, rows)", "Mul({a}, {a}_rms)",
    "Reshape({a}, {a}_shape)", "Mul({a}, {a}_angle)", "Cast<to = 1>({a}_nan)",
)  # fmt: skip
BINARY = (
    "Add({a}, {b})",
    "Sub({a}, {b})",
    "Max({a}, {b})",
    "Where(c, {a}, {b})",
    "MatMul({a}_p, {b})",
    "Mul({a}, {b}_s)",
)
BEFORE = {
    "_l": "{a}_l, {a}_r = Split<axis = 1>({a})",
    "_rms": "{a}_q = Mul({a}, {a}) {a}_m = ReduceMean<axes = [-1]>({a}_q) {a}_e = Add({a}_m, gamma1) "
    "{a}_o = Sqrt({a}_e) {a}_rms = Reciprocal({a}_o)",
    "_shape": "{a}_shape = Shape({a})",
    "_angle": "{a}_k = Mul({a}, half) {a}_angle = Cos({a}_k)",
    "_nan": "{a}_n = IsNaN({a}) {a}_nan = Cast<to = 7>({a}_n)",
    "_p": "{a}_t = Transpose({a}) {a}_u = MatMul({a}, {a}_t) {a}_d = Mul({a}_u, small) "
    "{a}_p = Softmax<axis = -1>({a}_d)",
    "_s": "{b}_s = Sigmoid({b})",
}
CONSTANTS = (
    "float half = {0.5}, float small = {0.1}, float low = {-1000000}, float high = {4}, float gamma1 = {0.5}, "
    "int64[4] rows = {3,1,0,2}"
)


@dataclass(slots=True)
class Writer:
    """Adds nodes whose operands are values that are there; each helper value is made once."""

    random: Random
    names: list[str] = field(default_factory=lambda: ["x", "z"])
    lines: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)

    def node(self) -> None:
        template = self.random.choice(UNARY + BINARY)
        a, b = self.random.choice(self.names), self.random.choice(self.names)
        for ending, text in BEFORE.items():
            if f"{ending})" in template or f"{ending}," in template:
                self._help(text.format(a=a, b=b))
        name = f"v{len(self.names)}"
        self.lines.append(f"{name} = {template.format(a=a, b=b)}")
        self.names.append(name)

    def branch(self) -> None:
        """An If over two values, each computed on a little inside."""
        name, a, b = f"v{len(self.names)}", self.random.choice(self.names), self.random.choice(self.names)
        self.lines.append(
            f"{name} = If (go) <then_branch = t () => ({SHAPE} {name}_t) {{ {name}_i = MatMul({a}, w) "
            f"{name}_t = Tanh({name}_i) }}, else_branch = e () => ({SHAPE} {name}_e) {{ {name}_e = Identity({b}) }}>"
        )
        self.names.append(name)

    def _help(self, text: str) -> None:
        if text not in self.made:
            self.made.add(text)
            self.lines.append(text)

    def model(self) -> ModelProto:
        inner = self.names[2:]
        outputs = sorted({inner[-1], *self.random.sample(inner, min(2, len(inner)))})
        declared = ", ".join(f"{SHAPE} {name}" for name in outputs)
        text = (
            f'<ir_version: 8, opset_import: ["": 17]> g ({SHAPE} x, {SHAPE} z, bool[4,{WIDTH}] c, bool go) '
            f"=> ({declared}) <{CONSTANTS}> {{ {' '.join(self.lines)} }}"
        )
        model = onnx.parser.parse_model(text)
        values = np.random.default_rng(0).normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, "w"))
        model.graph.initializer.append(
            numpy_helper.from_array(np.linspace(0.5, 1.5, WIDTH).astype(np.float32), "gamma")
        )
        return model


def random_model(seed: int, size: int) -> ModelProto:
    writer = Writer(Random(seed))
    for _ in range(size):
        writer.branch() if writer.random.random() < 0.1 else writer.node()
    return writer.model()


@pytest.mark.slow
@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32), size=st.integers(1, 14), mode=st.sampled_from(["minimal", "rope", "full"]))
def test_a_random_graph_converts_and_stays_close(tmp_path: Path, trunk: str, seed: int, size: int, mode: str) -> None:
    source, target = tmp_path / "random.onnx", tmp_path / "converted.onnx"
    model = random_model(seed, size)
    onnx.save(model, source)
    random = np.random.default_rng(seed)
    feed = {name: random.standard_normal((4, WIDTH)).astype(np.float32) for name in ("x", "z")}
    feed |= {"c": random.random((4, WIDTH)) < 0.5, "go": np.array(seed % 2 == 0)}
    converted(source, target, trunk=trunk, mode=mode)
    check_close(run(model, feed), run(emulated(target), feed), trunk)
    again = converted(target, tmp_path / "again.onnx", trunk=trunk, mode=mode)
    assert again.counts.casts_added == 0
