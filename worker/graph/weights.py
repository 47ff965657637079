"""Weights in bulk: streamed conversion to half, and what rounding would do to them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from worker.graph.dtype import HalfType
from worker.graph.payload import Payload
from worker.graph.skeleton import Skeleton

_SMALL_MAGNITUDE = 1e-3
"""Only a tensor whose largest value is below this can lose a noticeable part of itself to FP16's subnormals."""


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


def float_chunks(skeleton: Skeleton, tensor: TensorProto) -> Iterator[NDArray[np.float32]]:
    """An FP32 tensor's values in order, flat."""
    payload = skeleton.payload(tensor)
    if payload is None:
        yield numpy_helper.to_array(tensor).reshape(-1)
        return
    yield from payload_floats(payload)


def payload_floats(payload: Payload) -> Iterator[NDArray[np.float32]]:
    for data in payload.chunks():
        yield np.frombuffer(data, "<f4")


def statistics(skeleton: Skeleton, tensor: TensorProto, half: HalfType) -> Statistics:
    """One pass over the tensor; the rounding error is only worked out where it can matter."""
    max_abs, non_finite = 0.0, 0
    for values in float_chunks(skeleton, tensor):
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
        if not np.isfinite(low) or not np.isfinite(high):
            finite = values[np.isfinite(values)]
            non_finite += values.size - finite.size
            low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        max_abs = max(max_abs, -low, high)
    suspicious = 0.0 < max_abs < _SMALL_MAGNITUDE
    return Statistics(max_abs, _rounding_loss(skeleton, tensor, half) if suspicious else 0.0, non_finite)


def _rounding_loss(skeleton: Skeleton, tensor: TensorProto, half: HalfType) -> float:
    error = total = 0.0
    for values in float_chunks(skeleton, tensor):
        finite = values[np.isfinite(values)].astype(np.float64)
        rounded = finite.astype(np.float32).astype(half.numpy).astype(np.float64)
        error += float(((finite - rounded) ** 2).sum())
        total += float((finite**2).sum())
    return (error / total) ** 0.5 if total else 0.0
