"""A choice of islands as conversion options: what is given up is named in `keep_trunk`, of a mode that has it all."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from glob import escape

from worker.graph.node import Node
from worker.precision.planner import Options
from worker.verify.search.types import Candidate


def word(node: Node) -> str:
    """What names the node in `keep_trunk`."""
    return escape(node.label)


def options_keeping(options: Options, every: Collection[Candidate], kept: Collection[int]) -> Options:
    """`options` without the candidates that are not kept. Those with an obstacle always are."""
    return replace(options, keep_trunk=(*options.keep_trunk, *dict.fromkeys(_released(every, kept))))


def _released(every: Collection[Candidate], kept: Collection[int]) -> Iterator[str]:
    for candidate in every:
        if candidate.obstacle is None and candidate.number not in kept:
            yield from map(word, candidate.nodes)
