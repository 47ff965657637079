"""Samples: values for a model's inputs, uploaded to judge the accuracy of its builds on."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SampleTensor(_Value):
    """Values for one input. `dtype` is ONNX's lower-case name, as in a model's inputs."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Sample(_Value):
    """An uploaded file: an `npz` archive holds one set of inputs, a `pb` file one tensor of a set. Size in bytes."""

    digest: str
    size: int
    format: Literal["npz", "pb"]
    tensors: tuple[SampleTensor, ...]
