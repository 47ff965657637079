"""Names that are unique over all scopes, so that one flat index serves the whole model.

ONNX lets sibling subgraphs (the branches of an If) use the same name for different values. All but the first
get a name of their own; names of the main graph never change.
"""

from collections.abc import Callable, Iterator

from onnx import GraphProto

from service.errors import InvalidGraph
from worker.graph.walk import subgraphs


class NameSource:
    """Hands out names that nothing in the model has yet; deterministic."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def fresh(self, wish: str) -> str:
        name, number = wish, 1
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name


def all_names(graph: GraphProto) -> set[str]:
    """Every value name in the graph and its subgraphs."""
    names: set[str] = set()
    pending = [graph]
    while pending:
        scope = pending.pop()
        names.update(_made(scope))
        for node in scope.node:
            names.update(node.input)
            pending.extend(subgraphs(node))
    return names


def make_names_unique(graph: GraphProto) -> None:
    """Renames in place. Raises InvalidGraph when one scope makes the same name twice."""
    source = NameSource(all_names(graph))
    seen: set[str] = set()
    pending: list[tuple[GraphProto, dict[str, str]]] = [(graph, {})]
    while pending:
        scope, outer = pending.pop()
        renames = dict(outer)
        made_here: set[str] = set()
        for name in _made(scope):
            if name in made_here:
                raise InvalidGraph(f"the name {name!r} is made twice in graph {scope.name!r}")
            made_here.add(name)
            renames.pop(name, None)
            if name in seen:
                renames[name] = source.fresh(name)
            seen.add(name)
        if renames:
            _rename(scope, lambda name, renames=renames: renames.get(name, name))  # type: ignore[misc]
        for node in scope.node:
            pending.extend((body, renames) for body in subgraphs(node))


def _made(scope: GraphProto) -> Iterator[str]:
    inputs = {value.name for value in scope.input}
    yield from (value.name for value in scope.input)
    yield from (tensor.name for tensor in scope.initializer if tensor.name not in inputs)
    yield from (tensor.values.name for tensor in scope.sparse_initializer if tensor.values.name not in inputs)
    for node in scope.node:
        yield from (name for name in node.output if name)


def _rename(scope: GraphProto, new: Callable[[str], str]) -> None:
    for value in (*scope.input, *scope.output, *scope.value_info):
        value.name = new(value.name)
    for tensor in scope.initializer:
        tensor.name = new(tensor.name)
    for sparse in scope.sparse_initializer:
        sparse.values.name = new(sparse.values.name)
    for node in scope.node:
        node.input[:] = [new(name) for name in node.input]
        node.output[:] = [new(name) for name in node.output]
