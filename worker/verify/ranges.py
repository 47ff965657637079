"""Range analysis: how large values get when the model runs in FP32 on generated inputs."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import TensorProto, helper

from worker.graph.index import build_index
from worker.graph.load import load
from worker.graph.names import NameSource, all_names
from worker.graph.skeleton import Skeleton
from worker.verify.inputs import generate, input_specs, shape_sets
from worker.verify.session import RunFailed, Session
from worker.verify.types import ShapeTriple, Unverifiable
from worker.verify.watchdog import Watchdog
from worker.verify.weights import weight_bytes

LARGEST_WEIGHTS = 512 << 20
"""Bytes. Running a larger model would cost more than converting it."""


def largest_magnitudes(
    source: Path,
    names: Collection[str],
    profiles: tuple[Mapping[str, ShapeTriple], ...] = (),
    *,
    seed: int = 0,
    seconds: float = 120.0,
    memory_bytes: int = 16 << 30,
) -> dict[str, float]:
    """max |x| of each named value of the main graph, over the smallest and the best shapes of the profiles.

    Names that the graph does not have are left out. Raises Unverifiable when the model cannot be run within the budget.
    """
    skeleton = load(source)
    if weight_bytes(skeleton) > LARGEST_WEIGHTS:
        raise Unverifiable(f"the model has {weight_bytes(skeleton) >> 20} MiB of weights, too many to run it here")
    index = build_index(skeleton)
    specs = input_specs(index)
    feeds = [generate(specs, shapes, seed) for shapes in shape_sets(skeleton.model, profiles)]
    wanted = [name for name in sorted(names) if name in index.producers]
    return measure(skeleton, source.parent, wanted, feeds, Watchdog(seconds, memory_bytes))


def measure(
    skeleton: Skeleton, folder: Path, names: Sequence[str], feeds: Sequence[Mapping[str, Any]], watchdog: Watchdog
) -> dict[str, float]:
    """max |x| of each named FP32 value of the main graph over all feeds that the model takes. The skeleton is changed.

    Raises Unverifiable when it takes none, or the budget is spent.
    """
    probes = _add_probes(skeleton, names)
    session = Session(skeleton, folder, "model")
    found: dict[str, float] = {}
    failure: RunFailed | None = None
    for feed in feeds:
        try:
            values = session.run(feed, watchdog)
        except RunFailed as error:
            failure = error
            continue
        for name, probe in probes.items():
            found[name] = max(found.get(name, 0.0), float(values[probe]))
    if probes and not found:
        raise Unverifiable(f"the model does not run on generated inputs: {failure}")
    return found


def _add_probes(skeleton: Skeleton, names: Sequence[str]) -> dict[str, str]:
    """An output with max |x| for each value, so that activations need not be kept."""
    graph = skeleton.model.graph
    fresh = NameSource(all_names(graph))
    probes = {}
    for name in names:
        size, largest = fresh.fresh(f"{name}_abs"), fresh.fresh(f"{name}_max")
        graph.node.append(helper.make_node("Abs", [name], [size]))
        graph.node.append(helper.make_node("ReduceMax", [size], [largest], keepdims=0))
        graph.output.append(helper.make_tensor_value_info(largest, TensorProto.FLOAT, []))
        probes[name] = largest
    return probes
