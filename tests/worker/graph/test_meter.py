"""Bytes are told now and then, and always the last."""

import pytest

from worker.graph.meter import Meter

NEVER_AGAIN, AT_ONCE = 1e9, 0.0


def told(seconds: float, *steps: tuple[int, int]) -> list[tuple[int, int]]:
    heard: list[tuple[int, int]] = []
    meter = Meter(lambda done, total, _rate: heard.append((done, total)), seconds)
    for step in steps:
        meter(*step)
    return heard


CASES = {
    "each, where there is time": (AT_ONCE, [(1, 3), (2, 3), (3, 3)], [(1, 3), (2, 3), (3, 3)]),
    "the last alone": (NEVER_AGAIN, [(1, 3), (2, 3), (3, 3)], [(3, 3)]),
    "the last of each file": (NEVER_AGAIN, [(1, 2), (2, 2), (1, 1)], [(2, 2), (1, 1)]),
    "an empty file": (NEVER_AGAIN, [(0, 0)], [(0, 0)]),
}


@pytest.mark.parametrize(("seconds", "steps", "expected"), CASES.values(), ids=CASES)
def test_what_is_told(seconds: float, steps: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert told(seconds, *steps) == expected
