"""Exponentials: softplus, mish, log-sum-exp and softmax written out, and any exp of an unbounded value."""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.islands.base import MINIMAL, Declined, Island, Surroundings, ordered
from worker.precision.ops import MOVEMENT

_ONE_OPERATOR = frozenset(
    {
        "Softplus", "Mish", "ReduceLogSumExp", "ReduceLogSum", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    }
)  # fmt: skip
_FOLLOWS = frozenset({"Add", "Sub", "Mul", "Div", "ReduceSum", "Sum", "Log", "Reciprocal", "Neg"}) | MOVEMENT
_BOUNDED_BY_SIGN = frozenset({"Celu", "Selu", "Elu"})


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exp, with the sums, logarithm and division that take its result back to an ordinary size."""

    name: str = "exponential"
    modes: frozenset[str] = MINIMAL
    hazard: str = "exp(x) overflows FP16 from x = 11.1 on"

    def find(self, graph: Graph, around: Surroundings) -> Iterator[Island | Declined]:
        for node in graph.nodes:
            if node in around.core or not graph.float_inputs(node):
                continue
            if node.op in _BOUNDED_BY_SIGN:
                yield Declined(self.name, node.label, "its exponential is of a negative value only")
            elif node.op in _ONE_OPERATOR:
                yield Island(self.name, f"{node.op} takes an exponential or a logarithm", self.hazard, (node,))
            elif node.is_a("Exp") and node.input(0) not in graph.static:
                yield Island(self.name, "exp of an unbounded value", self.hazard, ordered(_grow(graph, node)))
            elif node.is_a("Log") and node.input(0) not in graph.static:
                yield Island(self.name, "logarithm near zero", self.hazard, (node,))


def _grow(graph: Graph, exponential: Node) -> set[Node]:
    """Follows the exponential through nodes that read nothing else but it and constants."""
    found = {exponential} | _shift(graph, exponential)
    values = {exponential.output}
    pending = [exponential.output]
    while pending:
        for node in graph.consumers(pending.pop()):
            if node in found or node.op not in _FOLLOWS:
                continue
            if all(name in values or name in graph.static for name in graph.float_inputs(node)):
                found.add(node)
                outputs = graph.float_outputs(node)
                values.update(outputs)
                if not node.is_a("Log", "Reciprocal", "Div"):
                    pending.extend(outputs)
    return found


def _shift(graph: Graph, exponential: Node) -> set[Node]:
    """`x - max(x)` before the exponential, as a softmax written out has it."""
    minus = graph.producer(exponential.input(0))
    if minus is None or not minus.is_a("Sub"):
        return set()
    largest = graph.producer(minus.input(1))
    is_largest = largest is not None and largest.is_a("ReduceMax") and largest.input(0) == minus.input(0)
    return {minus, largest} if is_largest and largest is not None else {minus}
