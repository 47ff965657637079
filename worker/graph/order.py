"""Topological order: every node after those that make what it reads. Stable: a sorted graph stays as it is."""

from heapq import heapify, heappop, heappush

from onnx import GraphProto, NodeProto

from service.errors import InvalidGraph
from worker.graph.walk import graphs, subgraphs


def reads(node: NodeProto) -> set[str]:
    """Names that the node needs: its inputs, and what its subgraphs take from outside."""
    names = {name for name in node.input if name}
    for body in subgraphs(node):
        names |= _outer_names(body)
    return names


def sort_nodes(graph: GraphProto) -> None:
    """Sorts the graph's own nodes in place (not those of its subgraphs). Raises InvalidGraph on a cycle."""
    nodes = list(graph.node)
    maker = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{maker[name] for name in reads(node) if name in maker} for node in nodes]
    if all(not need or max(need) < index for index, need in enumerate(needs)):
        return
    order = _kahn(needs)
    if len(order) < len(nodes):
        stuck = next(nodes[index] for index in range(len(nodes)) if index not in set(order))
        raise InvalidGraph(f"the graph has a cycle through node {stuck.name!r} ({stuck.op_type})")
    del graph.node[:]
    graph.node.extend(nodes[index] for index in order)


def _kahn(needs: list[set[int]]) -> list[int]:
    waiting = [len(need) for need in needs]
    followers: list[list[int]] = [[] for _ in needs]
    for index, need in enumerate(needs):
        for earlier in need:
            followers[earlier].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for follower in followers[index]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, follower)
    return order


def _outer_names(body: GraphProto) -> set[str]:
    used: set[str] = set()
    made: set[str] = set()
    for graph in graphs(body):
        made.update(value.name for value in graph.input)
        made.update(tensor.name for tensor in graph.initializer)
        used.update(value.name for value in graph.output)
        for node in graph.node:
            used.update(node.input)
            made.update(node.output)
    return used - made - {""}
