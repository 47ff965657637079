"""Which nodes a user means: by name, by operator type, by glob, or by a value that they make or read."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from onnx import ModelProto

from service.errors import CommandError
from worker.graph import walk
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.requests import matches

_CLOSE = 5
_CUTOFF = 0.5


def select(graph: Graph, pattern: str, uploaded: ModelProto | None = None) -> tuple[Node, ...]:
    """The nodes, by the first of these that names any: exact name; operator type or glob; value. A value means who
    makes it, or who reads it where no node does.

    Raises CommandError with the names that are close, or, if `uploaded` has the name, with what became of it.
    """
    readings = (
        (node for node in graph.nodes if node.label == pattern),
        (node for node in graph.nodes if matches(node, pattern)),
        _around(graph, pattern),
    )
    for reading in readings:
        if found := tuple(reading):
            return found
    if uploaded is not None and pattern in _names_in(uploaded):
        raise CommandError(
            f"{pattern!r} is in the file, but not in the graph that is converted: functions are inlined, and Casts of "
            "FP32 to FP32 taken out. Ask for a node or value beside it."
        )
    close = close_names(graph, pattern)
    hint = f"did you mean {', '.join(map(repr, close))}?" if close else "leave it out to see the whole plan."
    raise CommandError(f"no node, operator type or value is called {pattern!r}; {hint}", close=close)


def close_names(graph: Graph, pattern: str) -> list[str]:
    """Names that contain the pattern, whatever the case; else those that are spelt alike."""
    names = {name.lower(): name for name in _names(graph)}
    wanted = pattern.lower()
    close = [name for name in names if wanted and wanted in name][:_CLOSE]
    return [names[name] for name in close or get_close_matches(wanted, names, _CLOSE, _CUTOFF)]


def _around(graph: Graph, value: str) -> Iterable[Node]:
    maker = graph.producer(value)
    return dict.fromkeys(graph.consumers(value)) if maker is None else (maker,)


def _names_in(model: ModelProto) -> set[str]:
    nodes = [node for graph in walk.graphs(model.graph) for node in graph.node]
    return {name for node in nodes for name in (node.name, node.op_type, *node.output)}


def _names(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        yield node.label
        yield node.op
        yield from (slot.name for slot in (*node.inputs, *node.outputs) if slot.name)
