"""Structures of real exports: kept without their weights, which are drawn anew from a recipe when a test loads one.

The recipe stands where ONNX keeps the place of external data: `location` is `seeded`, and `mean`, `std` and `seed`
say how to draw. What the exporter computed (tables of frequencies, masks, indices) is kept as it was.
"""

import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from worker.graph.walk import tensors

FOLDER = Path(__file__).parents[1] / "fixtures" / "exports"
SEEDED = "seeded"
_CORES = "atoll.cores"
_SIZE = "atoll.size."

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Export:
    """A model with weights, how many attention cores its author wrote, and shapes that suit its inputs."""

    model: ModelProto
    cores: int
    shapes: Shapes


def names() -> list[str]:
    return sorted(path.name.removesuffix(".onnx.xz") for path in FOLDER.glob("*.onnx.xz"))


@cache
def load(name: str) -> Export:
    """Raises FileNotFoundError for a name that `names` does not tell."""
    model = onnx.load_from_string(lzma.decompress((FOLDER / f"{name}.onnx.xz").read_bytes()))
    for tensor in tensors(model):
        if is_seeded(tensor):
            _draw(tensor)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    sizes = {key.removeprefix(_SIZE): int(value) for key, value in facts.items() if key.startswith(_SIZE)}
    return Export(model, int(facts[_CORES]), _shapes(model, sizes))


def describe(model: ModelProto, cores: int, sizes: dict[str, int]) -> None:
    """Writes what `load` will tell besides the graph: `sizes` of the dynamic axes, by symbol."""
    facts = {_CORES: cores, **{_SIZE + symbol: size for symbol, size in sizes.items()}}
    onnx.helper.set_model_props(model, {key: str(value) for key, value in facts.items()})


def is_seeded(tensor: TensorProto) -> bool:
    return any(entry.key == "location" and entry.value == SEEDED for entry in tensor.external_data)


def forget_values(tensor: TensorProto, values: NDArray[np.generic], seed: int) -> None:
    """Replaces the values by the recipe for some of the same mean and deviation."""
    recipe = {"location": SEEDED, "mean": f"{values.mean():.6g}", "std": f"{values.std():.6g}", "seed": str(seed)}
    for field in ("raw_data", "float_data", "external_data"):
        tensor.ClearField(field)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in recipe.items():
        tensor.external_data.add(key=key, value=value)


def _draw(tensor: TensorProto) -> None:
    recipe = {entry.key: entry.value for entry in tensor.external_data}
    # RandomState, since its stream is frozen for all versions of numpy to come.
    noise = np.random.RandomState(int(recipe["seed"])).standard_normal(tuple(tensor.dims))
    values = float(recipe["mean"]) + float(recipe["std"]) * noise
    tensor.raw_data = values.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).tobytes()
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _shapes(model: ModelProto, sizes: dict[str, int]) -> Shapes:
    defaults = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: tuple(dim.dim_value or sizes[dim.dim_param] for dim in value.type.tensor_type.shape.dim)
        for value in model.graph.input
        if value.name not in defaults
    }
