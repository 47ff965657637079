import math
from typing import Any

import numpy as np
import pytest

from worker.verify.compare import compare, worst
from worker.verify.types import Incomparable

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("reference", "actual", "cosine", "relative_l2", "max_error", "nonfinite"),
    [
        ([1, 2], [1, 2], 1.0, 0.0, 0.0, 0),
        ([3, 4], [3, 4.5], 0.99846, 0.1, 0.5, 0),
        ([1, 0], [0, 1], 0.0, math.sqrt(2), 1.0, 0),
        ([1, 1], [2, 2], 1.0, 1.0, 1.0, 0),
        ([1, 1], [-1, -1], -1.0, 2.0, 2.0, 0),
        ([0, 0], [0, 0], 1.0, 0.0, 0.0, 0),
        ([0, 0], [0, 1], 0.0, None, 1.0, 0),
        ([1, 2, 3], [1, INF, NAN], 1.0, 0.0, 0.0, 2),
        ([INF, -INF, NAN, 1], [INF, -INF, NAN, 1], 1.0, 0.0, 0.0, 0),
        ([INF, 1], [-INF, 1], 1.0, 0.0, 0.0, 1),
        ([-INF, 1], [-65504, 1], 1.0, 0.0, 0.0, 1),
        ([], [], 1.0, 0.0, 0.0, 0),
        ([True, False], [True, True], 1 / math.sqrt(2), 1.0, 1.0, 0),
        (["a"], ["a"], 1.0, 0.0, 0.0, 0),
        (["a"], ["b"], 0.0, None, 1.0, 0),
    ],
)
def test_figures(
    reference: Any, actual: Any, cosine: float, relative_l2: float | None, max_error: float, nonfinite: int
) -> None:
    figures = compare("y", np.array(reference), np.array(actual))
    assert figures.cosine == pytest.approx(cosine, abs=1e-5)
    assert figures.relative_l2 == (None if relative_l2 is None else pytest.approx(relative_l2))
    assert (figures.max_error, figures.nonfinite) == (pytest.approx(max_error), nonfinite)


def test_signal_to_noise_is_in_decibel() -> None:
    assert compare("y", np.array([10.0]), np.array([11.0])).snr_db == pytest.approx(20)
    assert compare("y", np.array([10.0]), np.array([10.0])).snr_db is None


def test_large_halves_do_not_overflow_the_figures() -> None:
    values = np.full(100, 60000, np.float16)
    assert compare("y", values, -values).relative_l2 == pytest.approx(2.0)


def test_sequences_are_compared_element_by_element() -> None:
    figures = compare("s", [np.ones(2), np.ones(3)], [np.ones(2), np.array([1, 1, 2.0])])
    assert figures.max_error == 1.0
    assert compare("s", [], []).cosine == 1.0


@pytest.mark.parametrize(
    ("reference", "actual", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), r"output 'y' has shape \[3, 2\]; FP32 gives \[2, 3\]"),
        ([np.ones(1)], [], "output 'y' is a sequence of 0; FP32 gives 1"),
    ],
)
def test_other_shapes_are_incomparable(reference: Any, actual: Any, message: str) -> None:
    with pytest.raises(Incomparable, match=message):
        compare("y", reference, actual)


def test_worst_keeps_the_worst_of_each_figure_by_name() -> None:
    first = compare("y", np.array([3.0, 4.0]), np.array([3.0, 4.5]))
    second = compare("y", np.array([1.0, NAN]), np.array([1.0, 2.0]))
    other = compare("z", np.array([1.0]), np.array([1.0]))
    combined = worst([second, other, first])
    assert [figure.name for figure in combined] == ["y", "z"]
    assert (combined[0].cosine, combined[0].max_error, combined[0].nonfinite) == (first.cosine, 0.5, 1)
    assert combined[0].snr_db == first.snr_db
