"""Where an error comes in: the first node whose result drifts from FP32 further than its inputs explain."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from worker.graph.index import GraphIndex, build_index
from worker.graph.inference import infer
from worker.graph.load import load
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.graph.types import propagate
from worker.verify.session import RunFailed, Session
from worker.verify.signatures import OLDEST_OPSET, Signature, add_signatures
from worker.verify.types import Culprit, Unverifiable
from worker.verify.watchdog import Watchdog

Prepare = Callable[[Skeleton], object]

_FLOAT = "tensor(float)"
_FLOATS = frozenset({_FLOAT, "tensor(float16)", "tensor(bfloat16)"})
_EXPLAINED = 4.0
"""A node hands on its inputs' drift, perhaps several times as large; more than this is its own doing."""


@dataclass(frozen=True, slots=True)
class Located:
    """The node to blame, and the tensor that is furthest off (which may be a later one)."""

    culprit: Culprit
    worst: Culprit


def locate(
    source: Path,
    converted: Path,
    prepare: Prepare,
    feed: Mapping[str, Any],
    watchdog: Watchdog,
    *,
    outputs: tuple[str, ...] = (),
    limit: float = 0.01,
) -> Located | None:
    """Compare every tensor that both graphs have by name, on one input. `prepare` makes the converted graph runnable.

    Only what leads to `outputs` is looked at (all if empty). None when nothing drifts at all, or no tensor is in both.
    Drift is the error's norm over that of the FP32 values; more than `limit` is worth naming. Raises Unverifiable.
    """
    skeletons = load(source), load(converted)
    indexes = build_index(skeletons[0]), build_index(load(converted))
    prepare(skeletons[1])
    names = _common(build_index(skeletons[0]), indexes[1], build_index(skeletons[1]))
    signatures = [
        _signatures(skeleton, path.parent, what, names, feed, watchdog)
        for skeleton, path, what in zip(skeletons, (source, converted), ("model", "converted graph"), strict=True)
    ]
    drifts = {name: drift(signatures[0][name], signatures[1][name]) for name in names}
    nodes = [node for node in _leading_to(indexes[1], outputs) if any(name in drifts for name in node.proto.output)]
    return _blame(nodes, indexes[1], drifts, limit)


def drift(expected: Signature, got: Signature) -> float:
    """Relative L2 error; infinite where values are inf or NaN that are finite in FP32."""
    if got.nonfinite > expected.nonfinite:
        return math.inf
    finite = np.isfinite(expected.sample) & np.isfinite(got.sample)
    one, other = (signature.sample[finite].astype(np.float64) for signature in (expected, got))
    error, size = float(np.linalg.norm(other - one)), float(np.linalg.norm(one))
    return 0.0 if error == 0.0 else error / size if size > 0.0 else error


def _common(source: GraphIndex, converted: GraphIndex, emulated: GraphIndex) -> list[str]:
    """Values of both main graphs that are FP32 when they run, in the order of the converted graph."""
    _refuse_old(source)
    types = [propagate(index, infer(index.model)) for index in (source, converted, emulated)]
    return [
        name
        for node in converted.nodes
        for name in node.proto.output
        if types[0].get(name) == _FLOAT and types[1].get(name) in _FLOATS and types[2].get(name) == _FLOAT
        and node.graph is converted.main
        and all(name in index.producers and index.producers[name].graph is index.main for index in (source, emulated))
    ]  # fmt: skip


def _refuse_old(index: GraphIndex) -> None:
    version = min((node.opset for node in index.nodes if "::" not in node.op), default=OLDEST_OPSET)
    if version < OLDEST_OPSET:
        raise Unverifiable(f"tensors are compared from opset {OLDEST_OPSET} on; the model has {version}")


def _signatures(
    skeleton: Skeleton, folder: Path, what: str, names: list[str], feed: Mapping[str, Any], watchdog: Watchdog
) -> dict[str, Signature]:
    probes = add_signatures(skeleton.model, names)
    session = Session(skeleton, folder, f"{what} with probes")
    try:
        return probes.read(session.run(session.fitted(feed), watchdog)) if names else {}
    except RunFailed as failure:
        raise Unverifiable(f"the {what} does not run with probes: {failure}") from failure


def _leading_to(index: GraphIndex, outputs: tuple[str, ...]) -> list[Node]:
    """Nodes of the main graph that `outputs` depend on, in order."""
    main = [node for node in index.nodes if node.graph is index.main]
    if not outputs:
        return main
    needed = set(outputs)
    found = []
    for node in reversed(main):
        if needed.intersection(node.proto.output):
            needed.update(_read(node))
            found.append(node)
    return found[::-1]


def _read(node: Node) -> Iterator[str]:
    """What the node and the graphs inside it read; names are unique over all scopes."""
    pending = [node.proto]
    while pending:
        proto = pending.pop()
        yield from (name for name in proto.input if name)
        for attribute in proto.attribute:
            for graph in (attribute.g, *attribute.graphs):
                pending.extend(graph.node)
                yield from (value.name for value in graph.output)


def _blame(nodes: list[Node], index: GraphIndex, drifts: Mapping[str, float], limit: float) -> Located | None:
    found = [_judged(node, index, drifts) for node in nodes]
    drifting = [culprit for culprit in found if _size(culprit) > 0.0]
    if not drifting:
        return None
    own = (culprit for culprit in drifting if _size(culprit) > max(limit, _EXPLAINED * culprit.inherited))
    steepest = max(drifting, key=lambda culprit: _size(culprit) - culprit.inherited)
    return Located(next(own, steepest), max(drifting, key=_size))


def _judged(node: Node, index: GraphIndex, drifts: Mapping[str, float]) -> Culprit:
    tensor = max((name for name in node.proto.output if name in drifts), key=drifts.__getitem__)
    inherited = max((_inherited(name, index, drifts) for name in _read(node)), default=0.0)
    size = drifts[tensor]
    return Culprit(node.label, node.op, tensor, None if math.isinf(size) else size, min(inherited, 1e30))


def _size(culprit: Culprit) -> float:
    return math.inf if culprit.drift is None else culprit.drift


def _inherited(name: str, index: GraphIndex, drifts: Mapping[str, float]) -> float:
    """The drift of a value, or of the compared values that it is made from."""
    pending, seen, largest = [name], {name}, 0.0
    while pending:
        value = pending.pop()
        if value in drifts:
            largest = max(largest, drifts[value])
        elif value in index.producers:
            fresh = [read for read in index.producers[value].proto.input if read and read not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return largest
