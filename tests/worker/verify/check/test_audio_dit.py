from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit
from worker.verify.check import verify
from worker.verify.types import VerifyRequest

TINY = AudioDiTConfig(layers=1, dim=64, heads=1, latent_channels=8, cond_tokens=6, cond_dim=16)


def cast_everything_to_half(source: Path, target: Path) -> None:
    """What nobody should do: every float in FP16, casts at the borders only."""
    model = onnx.load(source)
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            with np.errstate(over="ignore"):
                halves = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(halves, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    inner = {value.name: f"{value.name}_half" for value in (*graph.input, *graph.output)}
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    for node in nodes:
        node.input[:] = [inner.get(name, name) for name in node.input]
        node.output[:] = [inner.get(name, name) for name in node.output]
    before = [helper.make_node("Cast", [v.name], [inner[v.name]], to=TensorProto.FLOAT16) for v in graph.input]
    after = [helper.make_node("Cast", [inner[v.name]], [v.name], to=TensorProto.FLOAT) for v in graph.output]
    del graph.node[:], graph.value_info[:]
    graph.node.extend([*before, *nodes, *after])
    onnx.save(model, target)


@pytest.fixture
def example(tmp_path: Path) -> Callable[..., Path]:
    def write(exporter: Exporter) -> Path:
        path = tmp_path / f"{exporter}.onnx"
        write_audio_dit(path, replace(TINY, exporter=exporter))
        return path

    return write


def test_the_example_equals_itself(example: Callable[..., Path]) -> None:
    path = example("torchscript")
    profile = {"x": ((1, 8, 1), (1, 8, 20), (1, 8, 40)), "local_add_cond": ((1, 9, 1), (1, 9, 20), (1, 9, 40))}
    verdict = verify(VerifyRequest(path, path, (profile,), target_cosine=1.0))
    assert (verdict.verdict, verdict.cosine) == ("passed", 1.0)


@pytest.mark.parametrize("exporter", ["dynamo", "opset23"])
def test_half_without_islands_fails(example: Callable[..., Path], tmp_path: Path, exporter: Exporter) -> None:
    source = example(exporter)
    cast_everything_to_half(source, tmp_path / "naive.onnx")
    verdict = verify(VerifyRequest(source, tmp_path / "naive.onnx"))
    assert verdict.verdict == "failed"
    assert verdict.cosine is not None
    assert verdict.cosine < 0.999
