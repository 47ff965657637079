"""The element types that precision is about, under their ONNX numbers, numpy types and schema spellings."""

from dataclasses import dataclass
from math import ceil, log2

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto


@dataclass(frozen=True, slots=True)
class HalfType:
    """A 16-bit float type: the dtype of a trunk."""

    name: str
    onnx: int
    numpy: np.dtype
    type_string: str
    max: float
    smallest_normal: float

    @property
    def lossy_below(self) -> float:
        """A tensor whose largest value is below this may lose a noticeable part of itself to subnormals."""
        return 16 * self.smallest_normal

    def bits(self, value: float) -> int:
        """The bits of a positive value in this type; they are ordered as the values are."""
        return int(np.array(value, self.numpy).view(np.uint16))

    @property
    def mask_floor(self) -> float:
        """What a huge negative mask saturates to: three quarters of the way to overflow.

        A score may be added without it, and in FP16 one below 16 vanishes beside it, as in FP32 beside -1e9: the
        spacing is that of the lowest value.
        """
        return -0.75 * 2.0 ** ceil(log2(self.max))


FP16 = HalfType("fp16", TensorProto.FLOAT16, np.dtype(np.float16), "tensor(float16)", 65504.0, 2.0**-14)
BF16 = HalfType(
    "bf16", TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16), "tensor(bfloat16)", 3.3895313892515355e38, 2.0**-126
)
HALF_TYPES = {half.name: half for half in (FP16, BF16)}

FLOAT = "tensor(float)"


def type_string(elem_type: int) -> str:
    """`tensor(float)` for 1, and so on: the spelling of operator schemas."""
    return f"tensor({dtype_name(elem_type)})"


def dtype_name(elem_type: int) -> str:
    return str(TensorProto.DataType.Name(elem_type)).lower()


def itemsize(elem_type: int) -> int:
    return int(onnx.helper.tensor_dtype_to_np_dtype(elem_type).itemsize)


OTHER_FLOATS = frozenset(
    type_string(dtype) for dtype in (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
)
