"""Steps along the dataflow that several families share."""

from collections.abc import Iterator

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.ops import MOVEMENT

_TRANSPARENT = MOVEMENT | {"Cast", "Dropout"}


def after_movement(graph: Graph, name: str) -> Iterator[tuple[Node, str]]:
    """Nodes that read the value, or what movement makes of it: each with the name that it reads. Movement too."""
    pending, seen = [name], {name}
    while pending:
        value = pending.pop()
        for node in graph.consumers(value):
            yield node, value
            if node.op in _TRANSPARENT and node.input(0) == value and node.output not in seen:
                seen.add(node.output)
                pending.append(node.output)


def before_movement(graph: Graph, name: str) -> str:
    """The value that movement made this one of."""
    while (node := graph.producer(name)) is not None and node.op in _TRANSPARENT:
        name = node.input(0)
    return name
