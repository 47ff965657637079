"""What the planner decides about a graph that is given as ONNX text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from worker.graph.graph import Graph, analyze
from worker.graph.load import prepare
from worker.graph.skeleton import Skeleton
from worker.precision.islands import Declined
from worker.precision.plan import PrecisionPlan
from worker.precision.planner import Options, make_plan

WIDTH = 64

_ONES = ",".join(["1"] * WIDTH)
_CONSTANTS = (
    "float zero = {0}, float one = {1}, float two = {2}, float eps = {1e-6}, float tiny = {1e-12}, "
    "int64[1] last = {-1}, int64 first = {0}, int64 step = {1}, int64[1] axis0 = {0}, int64[1] axis1 = {1}, "
    f"float[{WIDTH}] gamma = {{{_ONES}}}, float[{WIDTH}] beta = {{{_ONES}}}"
)


@dataclass(frozen=True, slots=True)
class Planned:
    """Nodes are named by their first output."""

    graph: Graph
    plan: PrecisionPlan

    def island(self, family: str) -> set[str]:
        """The nodes of all islands of a family."""
        return {node.output for island in self.plan.islands if island.family == family for node in island.nodes}

    def islands(self) -> set[str]:
        return {node.output for island in self.plan.islands for node in island.nodes}

    def half(self) -> set[str]:
        """Nodes that make or read half."""
        return {node.output for node in self.graph.nodes if self.plan.decisions[node.index].is_half}

    def cores(self) -> list[set[str]]:
        """The nodes of each bounded attention core."""
        return [{node.output for node in core.core.nodes} for core in self.plan.cores if core.bounded]

    def declined(self, family: str) -> list[str]:
        return [
            answer.reason for answer in self.plan.declined if isinstance(answer, Declined) and answer.family == family
        ]

    def reason(self, output: str) -> str:
        node = self.graph.producer(output)
        assert node is not None
        return self.plan.decisions[node.index].reason

    def findings(self, kind: str) -> list[str]:
        return [finding.where for finding in self.plan.findings if finding.kind == kind]


def parse(text: str, opset: int = 17, ir_version: int = 8) -> onnx.ModelProto:
    """A model given as text without its header."""
    header = f'<ir_version: {ir_version}, opset_import: ["": {opset}, "com.microsoft": 1, "acme": 1]>'
    return onnx.parser.parse_model(f"{header} {text}")


def with_weights(model: onnx.ModelProto, weights: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Adds random initializers, of the size that keeps an activation's scale."""
    for seed, (name, shape) in enumerate(weights.items()):
        values = np.random.default_rng(seed).normal(0, 0.125, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


def plan(text: str, opset: int = 17, weights: Mapping[str, tuple[int, ...]] | None = None, **options: Any) -> Planned:
    """Plans the whole graph that the text spells; `weights` are the shapes of random initializers to add."""
    return plan_model(with_weights(parse(text, opset), weights or {}), **options)


def plan_model(
    model: onnx.ModelProto,
    measured: Mapping[str, float] | None = None,
    max_shapes: Mapping[str, tuple[int, ...]] | None = None,
    **options: Any,
) -> Planned:
    """Plans a model, which is changed on the way. `measured`: largest magnitudes of values, as FP32 runs gave them."""
    skeleton = Skeleton(model)
    prepare(skeleton)
    graph = analyze(skeleton, max_shapes or {})
    return Planned(graph, make_plan(graph, Options(**options), measured))


def plan_in_trunk(
    body: str,
    opset: int = 17,
    constants: str = "",
    inputs: str = "",
    weights: Mapping[str, tuple[int, ...]] | None = None,
    **options: Any,
) -> Planned:
    """Plans `body`, which makes y from the activation x (float[1, 8, 64]), between two projections by w."""
    more = f", {constants}" if constants else ""
    extra = f", {inputs}" if inputs else ""
    text = (
        f"g (float[1,8,{WIDTH}] input{extra}) => (float[] output) <{_CONSTANTS}{more}> "
        f"{{ x = MatMul(input, w) {body} output = MatMul(y, w) }}"
    )
    return plan(text, opset, {"w": (WIDTH, WIDTH), **(weights or {})}, **options)
