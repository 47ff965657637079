"""Conversion from ONNX text to a checked model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.worker.precision.planned import parse, with_weights
from worker.graph import walk
from worker.precision.convert import convert
from worker.precision.report import ConversionReport
from worker.types import ConvertRequest


@dataclass(frozen=True, slots=True)
class Converted:
    """A conversion: both files, the model that came out, and the report."""

    source: Path
    target: Path
    model: onnx.ModelProto
    report: ConversionReport

    def nodes(self, op: str | None = None) -> list[onnx.NodeProto]:
        """Nodes of all scopes, of one operator type."""
        scopes = walk.graphs(self.model.graph)
        return [node for scope in scopes for node in scope.node if op in (None, node.op_type)]

    def casts(self) -> list[tuple[str, int]]:
        """What is cast, and to which dtype."""
        return [(node.input[0], node.attribute[0].i) for node in self.nodes("Cast")]

    def weights(self) -> dict[str, int]:
        return {tensor.name: tensor.data_type for tensor in self.model.graph.initializer}

    def findings(self, kind: str) -> list[str]:
        return [finding.where for finding in self.report.findings if finding.kind == kind]


Convert = Callable[..., Converted]


@pytest.fixture
def convert_model(tmp_path: Path) -> Convert:
    """Converts a model, and runs the full check over what comes out."""

    def run(model: onnx.ModelProto, name: str = "model", **options: Any) -> Converted:
        source, target = tmp_path / f"{name}.onnx", tmp_path / f"{name}.converted.onnx"
        source.write_bytes(model.SerializeToString())
        report = convert(ConvertRequest(source, target, **options))
        converted = onnx.load(target)
        onnx.checker.check_model(converted, full_check=True)
        return Converted(source, target, converted, report)

    return run


@pytest.fixture
def convert_text(convert_model: Convert) -> Convert:
    """As `convert_model`, of ONNX text without a header; `weights` are the shapes of random initializers to add."""

    def run(
        text: str,
        opset: int = 17,
        weights: Mapping[str, tuple[int, ...]] | None = None,
        ir_version: int = 8,
        **options: Any,
    ) -> Converted:
        return convert_model(with_weights(parse(text, opset, ir_version), weights or {}), **options)

    return run
