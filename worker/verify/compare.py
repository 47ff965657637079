"""How far outputs are from their FP32 reference: cosine, relative L2, largest error, signal to noise."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worker.verify.types import Incomparable, OutputFigures


def compare(name: str, reference: Any, actual: Any) -> OutputFigures:
    """Figures over the elements that are finite in both; the others are counted. Raises Incomparable.

    Values are arrays, or (for sequences) lists of them. Two zero vectors have cosine 1, one zero vector cosine 0.
    """
    if isinstance(reference, list):
        return _compare_sequences(name, reference, actual)
    expected, got = np.asarray(reference), np.asarray(actual)
    if expected.shape != got.shape:
        raise Incomparable(f"output {name!r} has shape {list(got.shape)}; FP32 gives {list(expected.shape)}")
    if expected.dtype.kind in "OSU":
        return _compare_text(name, expected, got)
    return _compare_numbers(name, expected.astype(np.float64).ravel(), got.astype(np.float64).ravel())


def worst(figures: Iterable[OutputFigures]) -> tuple[OutputFigures, ...]:
    """One entry a name, in order of appearance: the worst of each figure."""
    result: dict[str, OutputFigures] = {}
    for figure in figures:
        known = result.get(figure.name)
        result[figure.name] = figure if known is None else _worse(known, figure)
    return tuple(result.values())


def _compare_numbers(name: str, expected: NDArray[np.float64], got: NDArray[np.float64]) -> OutputFigures:
    same = (expected == got) | (np.isnan(expected) & np.isnan(got))
    finite = np.isfinite(expected) & np.isfinite(got)
    nonfinite = int(np.count_nonzero(~finite & ~same))
    expected, got = expected[finite], got[finite]
    signal, error = _norm(expected), _norm(got - expected)
    return OutputFigures(
        name=name,
        cosine=_cosine(expected, got),
        relative_l2=_ratio(error, signal),
        max_error=float(np.abs(got - expected).max(initial=0.0)),
        snr_db=20 * math.log10(signal / error) if error > 0 and signal > 0 else None,
        nonfinite=nonfinite,
        largest=float(np.abs(expected).max(initial=0.0)),
    )


def _cosine(expected: NDArray[np.float64], got: NDArray[np.float64]) -> float:
    if np.array_equal(expected, got):
        return 1.0
    lengths = _norm(expected), _norm(got)
    if 0.0 in lengths:
        return 0.0
    return float(np.clip(np.dot(expected / lengths[0], got / lengths[1]), -1.0, 1.0))


def _norm(values: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(values))


def _ratio(error: float, signal: float) -> float | None:
    if error == 0.0:
        return 0.0
    return error / signal if signal > 0.0 else None


def _compare_text(name: str, expected: NDArray[Any], got: NDArray[Any]) -> OutputFigures:
    equal = bool(np.array_equal(expected, got))
    return OutputFigures(name, float(equal), 0.0 if equal else None, float(not equal), None, 0)


def _compare_sequences(name: str, reference: list[Any], actual: list[Any]) -> OutputFigures:
    if len(reference) != len(actual):
        raise Incomparable(f"output {name!r} is a sequence of {len(actual)}; FP32 gives {len(reference)}")
    if not reference:
        return OutputFigures(name, 1.0, 0.0, 0.0, None, 0)
    return worst(compare(name, one, other) for one, other in zip(reference, actual, strict=True))[0]


def _worse(one: OutputFigures, other: OutputFigures) -> OutputFigures:
    errors = (one.relative_l2, other.relative_l2)
    ratios = [snr for snr in (one.snr_db, other.snr_db) if snr is not None]
    return OutputFigures(
        name=one.name,
        cosine=min(one.cosine, other.cosine),
        relative_l2=None if None in errors else max(error for error in errors if error is not None),
        max_error=max(one.max_error, other.max_error),
        snr_db=min(ratios) if ratios else None,
        nonfinite=one.nonfinite + other.nonfinite,
        largest=max(one.largest, other.largest),
    )
