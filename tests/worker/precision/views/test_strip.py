import re

import pytest

from worker.precision.report import NodeRun
from worker.precision.views.strip import ROW_HEIGHT, ROW_PITCH, Strip, draw_strip

RECTANGLE = re.compile(rf"M(\d+) (\d+)h(\d+)v{ROW_HEIGHT}h-(\d+)z")


def runs(*pairs: tuple[str, int]) -> tuple[NodeRun, ...]:
    return tuple(NodeRun.model_validate({"kind": kind, "nodes": nodes}) for kind, nodes in pairs)


def columns(strip: Strip, kind: str) -> set[int]:
    """The nodes, counted from 0, that are drawn in the colour of `kind`."""
    found: set[int] = set()
    for x, y, width, back in RECTANGLE.findall(strip.paths.get(kind, "")):
        assert width == back
        start = int(y) // ROW_PITCH * strip.width + int(x)
        found |= set(range(start, start + int(width)))
    return found


@pytest.mark.parametrize("long", [1, 159, 160, 161, 5000, 100_000])
def test_each_node_is_drawn_once_in_its_place(long: int) -> None:
    strip = draw_strip(runs(("half", 2), ("fp32", long), ("cast", 1), ("half", 3)))
    assert columns(strip, "half") == {0, 1, long + 3, long + 4, long + 5}
    assert columns(strip, "fp32") == set(range(2, long + 2))
    assert columns(strip, "cast") == {long + 2}
    assert strip.counts == {"half": 5, "fp32": long, "cast": 1}


@pytest.mark.parametrize("nodes", [1, 1000, 1_000_000])
def test_the_height_stays_a_picture(nodes: int) -> None:
    assert ROW_HEIGHT <= draw_strip(runs(("half", nodes))).height <= 32 * ROW_PITCH


def test_a_graph_without_nodes_is_an_empty_strip() -> None:
    assert draw_strip(()).paths == {}
