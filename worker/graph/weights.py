"""Weights in bulk: streamed conversion to half, and what rounding would do to them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from worker.graph.dtype import HalfType
from worker.graph.payload import Payload
from worker.graph.skeleton import Skeleton


@dataclass(frozen=True, slots=True)
class Conversion:
    """FP32 to half; `limit` clamps finite values to +-limit first."""

    half: HalfType
    limit: float | None = None

    def apply(self, values: NDArray[np.float32]) -> NDArray[np.generic]:
        if self.limit is not None:
            values = clamp_finite(values, self.limit)
        with np.errstate(over="ignore"):
            return values.astype(self.half.numpy)


@dataclass(frozen=True, slots=True)
class Statistics:
    """`max_abs` of the finite values; `lost`: relative L2 error of rounding to half; `non_finite`: how many are."""

    max_abs: float
    lost: float
    non_finite: int


def clamp_finite(values: NDArray[np.float32], limit: float) -> NDArray[np.float32]:
    return np.where(np.isfinite(values), np.clip(values, -limit, limit), values).astype(np.float32)


def statistics(skeleton: Skeleton, tensor: TensorProto, half: HalfType) -> Statistics:
    """Of an FP32 tensor, wherever its bytes lie."""
    payload = skeleton.payload(tensor)
    if payload is not None:
        return payload_statistics(payload, half)
    return array_statistics(numpy_helper.to_array(tensor).reshape(-1), half)


def array_statistics(values: NDArray[np.float32], half: HalfType) -> Statistics:
    """Of values that are at hand, flat."""
    return _statistics(lambda: iter((values,)), half)


def whole_array(skeleton: Skeleton, tensor: TensorProto) -> NDArray[np.generic]:
    """All values of an FP32 tensor, wherever its bytes lie; for those that fit into memory with ease."""
    payload = skeleton.payload(tensor)
    if payload is None:
        return numpy_helper.to_array(tensor)
    return np.frombuffer(payload.read(), "<f4").reshape(tuple(tensor.dims))


def payload_statistics(payload: Payload, half: HalfType) -> Statistics:
    """One pass over the file; a second one where rounding may matter."""
    return _statistics(lambda: (np.frombuffer(data, "<f4") for data in payload.chunks()), half)


def _statistics(chunks: Callable[[], Iterator[NDArray[np.float32]]], half: HalfType) -> Statistics:
    max_abs, non_finite = 0.0, 0
    for values in chunks():
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
        if not np.isfinite(low) or not np.isfinite(high):
            finite = values[np.isfinite(values)]
            non_finite += values.size - finite.size
            low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        max_abs = max(max_abs, -low, high)
    suspicious = 0.0 < max_abs < half.lossy_below
    return Statistics(max_abs, _rounding_loss(chunks(), half) if suspicious else 0.0, non_finite)


def _rounding_loss(chunks: Iterator[NDArray[np.float32]], half: HalfType) -> float:
    error = total = 0.0
    for values in chunks:
        finite = values[np.isfinite(values)].astype(np.float64)
        rounded = finite.astype(np.float32).astype(half.numpy).astype(np.float64)
        error += float(((finite - rounded) ** 2).sum())
        total += float((finite**2).sum())
    return (error / total) ** 0.5 if total else 0.0
