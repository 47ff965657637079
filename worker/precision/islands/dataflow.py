"""Steps along the dataflow that several families share."""

from collections.abc import Iterator

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.ops import MOVEMENT

_TRANSPARENT = MOVEMENT | {"Cast", "Dropout"}


def other_inputs(graph: Graph, node: Node, name: str) -> list[str]:
    """The node's float inputs besides `name` (once, if it is read twice)."""
    names = graph.float_inputs(node)
    names.remove(name)
    return names


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


def nodes_between(graph: Graph, start: str, end: Node) -> set[Node]:
    """Movement nodes from the value `start` down to the node `end`, which reads it through them."""
    found: set[Node] = set()
    pending = [name for name in end.proto.input if name]
    while pending:
        name = pending.pop()
        node = graph.producer(name)
        if name == start or node is None or node.op not in _TRANSPARENT or node in found:
            continue
        if before_movement(graph, name) == before_movement(graph, start):
            found.add(node)
            pending.append(node.input(0))
    return found
