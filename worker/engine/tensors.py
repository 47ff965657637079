"""TensorRT's tensors as values, which do not point into a network."""

from collections.abc import Callable
from dataclasses import dataclass

from worker.engine.trt import Tensor


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """An input or output. `shape` has -1 where it is dynamic, `dims` the dimensions' names where they have one.

    `is_shape_tensor`: the values are a shape, so a profile gives ranges of values.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    dims: tuple[str | None, ...]
    is_shape_tensor: bool = False

    @property
    def needs_range(self) -> bool:
        """True where a profile has to speak."""
        return self.is_shape_tensor or -1 in self.shape

    @property
    def dynamic_axes(self) -> list[int]:
        return [axis for axis, size in enumerate(self.shape) if size == -1]


def tensor_facts(tensor: Tensor) -> TensorFacts:
    shape = tuple(int(size) for size in tensor.shape)
    return TensorFacts(
        name=readable(lambda: tensor.name) or "",
        dtype=dtype_name(tensor),
        shape=shape,
        dims=tuple(_dim_name(tensor, axis) for axis in range(len(shape))),
        is_shape_tensor=tensor.is_shape_tensor,
    )


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype.name).lower()


def readable(read: Callable[[], str | None]) -> str | None:
    """A name that TensorRT hands out; bytes that are no UTF-8, which ONNX files may hold, are escaped."""
    try:
        return read()
    except UnicodeDecodeError as error:
        return error.object.decode(errors="backslashreplace")


def _dim_name(tensor: Tensor, axis: int) -> str | None:
    return readable(lambda: tensor.get_dimension_name(axis)) or None
