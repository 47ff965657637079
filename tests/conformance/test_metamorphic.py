"""What says nothing about a model's meaning changes nothing in its plan: names, order, where constants lie, opset."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import GraphProto, ModelProto, helper

from tests.conformance.public_reports import REPORTS
from tests.worker.precision.planned import Planned, plan_model
from worker.examples.audio_dit import AudioDiTConfig, write_audio_dit
from worker.graph import walk

EXPORTERS = ("torchscript", "dynamo", "opset23")
LONGEST_NAME = 12

Change = Callable[[ModelProto, Random], None]
Decisions = tuple[Counter[tuple[str, tuple[str, ...]]], Counter[str], int]


@cache
def subject(name: str) -> bytes:
    """A public report's graph, or a small diffusion transformer as an exporter writes it."""
    if name in REPORTS:
        return REPORTS[name].model().SerializeToString()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dit.onnx"
        config = AudioDiTConfig(layers=1, dim=64, heads=1, latent_channels=8, cond_tokens=6, cond_dim=16, exporter=name)
        write_audio_dit(path, config)
        return path.read_bytes()


def decisions(planned: Planned) -> Decisions:
    """Operator by operator which type variables are half, the families of islands, and the bounded cores."""
    nodes = [node for node in planned.graph.nodes if not node.is_a("Constant")]
    return (
        Counter((node.op, tuple(sorted(planned.plan.decisions[node.index].half))) for node in nodes),
        Counter(island.family for island in planned.plan.islands),
        len(planned.cores()),
    )


# --- changes that mean nothing ---------------------------------------------------------------------------------------


def rename_values(model: ModelProto, random: Random) -> None:
    public = {value.name for value in (*model.graph.input, *model.graph.output)}
    names = sorted({name for scope in walk.graphs(model.graph) for name in values(scope)} - public - {""})
    fresh = [f"v{number}" for number in range(len(names))]
    random.shuffle(fresh)
    new = dict(zip(names, fresh, strict=True))
    for scope in walk.graphs(model.graph):
        for value in (*scope.input, *scope.output, *scope.value_info, *scope.initializer):
            value.name = new.get(value.name, value.name)
        for node in scope.node:
            node.input[:] = [new.get(name, name) for name in node.input]
            node.output[:] = [new.get(name, name) for name in node.output]


def rename_nodes(model: ModelProto, random: Random) -> None:
    for node in nodes(model):
        node.name = "".join(random.choices("abc/._", k=random.randrange(LONGEST_NAME)))


def drop_node_names(model: ModelProto, _random: Random) -> None:
    for node in nodes(model):
        node.name = ""


def shuffle_nodes(model: ModelProto, random: Random) -> None:
    for scope in list(walk.graphs(model.graph)):
        order = list(scope.node)
        random.shuffle(order)
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
        del scope.node[:]
        scope.node.extend(copies)


def turn_initializers_into_constants(model: ModelProto, random: Random) -> None:
    public = {value.name for value in (*model.graph.input, *model.graph.output)}
    chosen = [tensor for tensor in model.graph.initializer if tensor.name not in public and random.random() < 0.5]
    made = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in chosen]
    for tensor in chosen:
        model.graph.initializer.remove(tensor)
    for node in made:
        model.graph.node.insert(0, node)


def turn_constants_into_initializers(model: ModelProto, random: Random) -> None:
    chosen = [node for node in model.graph.node if node.op_type == "Constant" and random.random() < 0.5]
    for node in chosen:
        tensor = node.attribute[0].t
        tensor.name = node.output[0]
        model.graph.initializer.append(tensor)
        model.graph.node.remove(node)


def values(scope: GraphProto) -> Iterator[str]:
    yield from (value.name for value in (*scope.input, *scope.output, *scope.initializer))
    for node in scope.node:
        yield from (*node.input, *node.output)


def nodes(model: ModelProto) -> Iterator[onnx.NodeProto]:
    for scope in walk.graphs(model.graph):
        yield from scope.node


CHANGES: tuple[Change, ...] = (
    rename_values,
    rename_nodes,
    drop_node_names,
    shuffle_nodes,
    turn_initializers_into_constants,
    turn_constants_into_initializers,
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["minimal", "rope", "full"])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    name=st.sampled_from([*EXPORTERS, *REPORTS]),
    trunk=st.sampled_from(["fp16", "bf16"]),
    changes=st.lists(st.sampled_from(CHANGES), min_size=1, unique=True),
    seed=st.integers(0, 1 << 32),
)
def test_the_plan_follows_meaning_alone(mode: str, name: str, trunk: str, changes: list[Change], seed: int) -> None:
    changed = ModelProto.FromString(subject(name))
    for change in changes:
        change(changed, Random(seed))
    expected = plan_model(ModelProto.FromString(subject(name)), mode=mode, trunk=trunk)
    assert decisions(plan_model(changed, mode=mode, trunk=trunk)) == decisions(expected)


@pytest.mark.parametrize("version", [18, 20, 21, 23])
@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
def test_a_newer_opset_of_the_same_model_keeps_islands_and_cores(version: int, trunk: str) -> None:
    model = ModelProto.FromString(subject("torchscript"))
    _, families, cores = decisions(plan_model(model, trunk=trunk))
    raised = onnx.version_converter.convert_version(ModelProto.FromString(subject("torchscript")), version)
    _, raised_families, raised_cores = decisions(plan_model(raised, trunk=trunk))
    assert (raised_families, raised_cores) == (families, cores)
