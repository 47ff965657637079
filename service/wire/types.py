"""What a scan of an ONNX file's wire format tells, without reading weights or importing onnx."""

from pydantic import BaseModel, ConfigDict

Dim = int | str | None
"""A fixed size, a symbol, or unknown (also for a placeholder such as `?`, 0 or -1 in a declared shape)."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TensorInfo(_Value):
    """A graph input or output. `dtype` is ONNX's lower-case name (`float`, `int64`, …); `shape` None: unknown rank."""

    name: str
    dtype: str
    shape: tuple[Dim, ...] | None

    @property
    def dynamic(self) -> bool:
        return self.shape is None or any(not isinstance(dim, int) for dim in self.shape)


class ExternalRef(_Value):
    """A slice of an external-data file, in bytes; `length` None: as long as the tensor's shape and dtype say."""

    tensor: str
    location: str
    offset: int = 0
    length: int | None = None
    nbytes: int = 0


class ModelScan(_Value):
    """Facts of a model file. `parameters` counts elements of initializers; `nodes` counts those in subgraphs too."""

    ir_version: int
    opsets: dict[str, int]
    producer: str = ""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    op_counts: dict[str, int]
    nodes: int
    parameters: int
    weight_bytes: int
    dtypes: dict[str, int] = {}
    external: tuple[ExternalRef, ...] = ()
    warnings: tuple[str, ...] = ()
