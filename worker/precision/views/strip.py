"""The graph as a strip: each node a column in the order of the file, its colour the dtype. Drawn as SVG paths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from worker.precision.report import NodeRun

_SHORTEST_ROW = 160
_MOST_ROWS = 32
ROW_HEIGHT = 14
ROW_PITCH = 18
"""Row heights in units of the drawing; across, one unit is one node."""


@dataclass(frozen=True, slots=True)
class Strip:
    """`paths`: SVG path data by kind of node. `counts`: nodes by kind."""

    width: int
    height: int
    paths: dict[str, str]
    counts: dict[str, int]


def draw_strip(runs: Sequence[NodeRun]) -> Strip:
    """Rows as long as the graph asks for, so that a large one stays a picture and a small one is not spread out."""
    total = sum(run.nodes for run in runs)
    width = max(_SHORTEST_ROW, -(-total // _MOST_ROWS))
    rows = max(1, -(-total // width))
    paths: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for kind, start, nodes in _pieces(runs, width):
        row, column = divmod(start, width)
        paths.setdefault(kind, []).append(f"M{column} {row * ROW_PITCH}h{nodes}v{ROW_HEIGHT}h-{nodes}z")
        counts[kind] = counts.get(kind, 0) + nodes
    return Strip(width, (rows - 1) * ROW_PITCH + ROW_HEIGHT, {kind: "".join(d) for kind, d in paths.items()}, counts)


def _pieces(runs: Sequence[NodeRun], width: int) -> Iterator[tuple[str, int, int]]:
    """Runs as (kind, first node, nodes), cut where a row ends."""
    start = 0
    for run in runs:
        left = run.nodes
        while left:
            nodes = min(left, width - start % width)
            yield run.kind, start, nodes
            start, left = start + nodes, left - nodes
