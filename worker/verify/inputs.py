"""Inputs that make sense for a graph nobody explained: from names, dtypes, shapes and how token ids are looked up."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.random import Generator
from numpy.typing import NDArray
from onnx import ModelProto, ValueInfoProto

from worker.graph.index import GraphIndex
from worker.verify.types import Shapes, ShapeTriple, Unverifiable

Dim = int | str | None
Array = NDArray[np.generic]

_PLACEHOLDER = re.compile(r"\?|\*|-1|none|unknown|", re.IGNORECASE)
_BATCH, _SPATIAL, _WAVE, _OTHER = 1, 64, 512, 16
_RATE = re.compile(r"(.*_)?(sr|sampl(e|ing)_?rate)", re.IGNORECASE)
_RATE_HZ = 16_000
_SMALL_IDS = 4
_UNSUPPORTED = frozenset({onnx.TensorProto.STRING, onnx.TensorProto.BFLOAT16})
_PASSES_IDS = (
    "Cast",
    "Identity",
    "Reshape",
    "Unsqueeze",
    "Squeeze",
    "Flatten",
    "Transpose",
    "Expand",
    "Slice",
    "Concat",
)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A public input. Dims: a size, a symbol that others may share, or None for unknown. Ids stay below `bound`."""

    name: str
    dtype: np.dtype
    dims: tuple[Dim, ...]
    bound: int | None = None


def input_specs(index: GraphIndex) -> tuple[InputSpec, ...]:
    """Inputs that have no default. Raises Unverifiable for those that cannot be generated."""
    defaults = {tensor.name for tensor in index.main.initializer}
    return tuple(_spec(value, index) for value in index.main.input if value.name not in defaults)


def shape_sets(model: ModelProto, profiles: tuple[Mapping[str, ShapeTriple], ...]) -> tuple[Shapes, ...]:
    """The shapes to try: each profile's smallest (they are cheap), then each one's best; or one set of defaults."""
    lows = [{name: triple[0] for name, triple in profile.items()} for profile in profiles]
    bests = [{name: triple[1] for name, triple in profile.items()} for profile in profiles]
    known = {value.name for value in model.graph.input}
    result: list[Shapes] = []
    for shapes in [*(low for low in lows if all(all(shape) for shape in low.values())), *bests]:
        mine = {name: shape for name, shape in shapes.items() if name in known}
        if mine not in result:
            result.append(mine)
    return tuple(result) or ({},)


def generate(specs: tuple[InputSpec, ...], shapes: Shapes, seed: int) -> dict[str, Array]:
    """One value for each input; the same arguments give the same values."""
    sizes = _symbol_sizes(specs, shapes)
    length = _WAVE if any(map(_is_rate, specs)) else _OTHER
    values = {}
    for position, spec in enumerate(specs):
        shape = shapes.get(spec.name) or tuple(_size(spec, axis, sizes, length) for axis in range(len(spec.dims)))
        values[spec.name] = _draw(spec, shape, np.random.default_rng((seed, position)))
    return values


# --- what the graph declares -----------------------------------------------------------------------------------------


def _spec(value: ValueInfoProto, index: GraphIndex) -> InputSpec:
    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type" or tensor.elem_type in _UNSUPPORTED:
        raise Unverifiable(f"inputs like {value.name!r} (sequences, optionals, strings, bfloat16) cannot be generated")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return InputSpec(value.name, dtype, tuple(_dim(dim) for dim in tensor.shape.dim), _id_bound(value.name, index))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value > 0 else None
    return None if _PLACEHOLDER.fullmatch(dim.dim_param) else dim.dim_param


def _id_bound(name: str, index: GraphIndex) -> int | None:
    """The number of rows of the smallest table that the input's values are looked up in."""
    bounds, pending, seen = [], [name], {name}
    while pending:
        for use in index.uses.get(pending.pop(), ()):
            table = index.weights.get(use.node.input(0))
            if use.node.is_a("Gather") and use.position == 1 and table is not None:
                bounds.append(table.dims[use.node.attribute("axis", 0)])
            elif use.node.is_a(*_PASSES_IDS) and use.node.output not in seen:
                seen.add(use.node.output)
                pending.append(use.node.output)
    return min(bounds, default=None)


# --- shapes ----------------------------------------------------------------------------------------------------------


def _symbol_sizes(specs: tuple[InputSpec, ...], shapes: Shapes) -> dict[str, int]:
    """What the given shapes say about symbols."""
    sizes: dict[str, int] = {}
    for spec in specs:
        for dim, size in zip(spec.dims, shapes.get(spec.name, ()), strict=False):
            if isinstance(dim, str):
                sizes.setdefault(dim, size)
    return sizes


def _size(spec: InputSpec, axis: int, sizes: dict[str, int], length: int) -> int:
    dim = spec.dims[axis]
    if isinstance(dim, int):
        return dim
    size = _usual_size(spec, axis, length)
    return size if dim is None else sizes.setdefault(dim, size)


def _usual_size(spec: InputSpec, axis: int, length: int) -> int:
    rank = len(spec.dims)
    recurrent = rank == 3 and isinstance(spec.dims[0], int) and spec.name.lower() in _STATES  # layers, batch, units
    if axis == 0 or (axis == 1 and recurrent):
        return _BATCH
    return _SPATIAL if rank == 4 and axis >= 2 else length


# --- values ----------------------------------------------------------------------------------------------------------


def _is_rate(spec: InputSpec) -> bool:
    """A sample rate: graphs choose by it, and what comes with it is sound."""
    return spec.dtype.kind in "iu" and _RATE.fullmatch(spec.name) is not None


def _draw(spec: InputSpec, shape: tuple[int, ...], random: Generator) -> Array:
    words = set(re.split(r"[^a-z]+", spec.name.lower()))
    if spec.dtype.kind == "b" or any("mask" in word for word in words):
        return _keep_mask(shape).astype(spec.dtype)
    if _is_rate(spec):
        return np.full(shape, _RATE_HZ, spec.dtype)
    if spec.dtype.kind in "iu":
        return _integers(spec, shape, words, random).astype(spec.dtype)
    for meaning, draw in _FLOATS:
        if words & meaning:
            return draw(random, shape).astype(spec.dtype)
    if len(shape) == 4 and shape[1] in (1, 3):
        return random.uniform(0, 1, shape).astype(spec.dtype)
    return random.standard_normal(shape).astype(spec.dtype)


def _keep_mask(shape: tuple[int, ...]) -> Array:
    """Ones and then some padding along the last axis, as masks of sequences have it; never all padding."""
    if not shape:
        return np.ones((), np.bool_)
    return np.broadcast_to(np.arange(shape[-1]) < max(1, shape[-1] * 3 // 4), shape)


def _integers(spec: InputSpec, shape: tuple[int, ...], words: set[str], random: Generator) -> Array:
    if words & {"position", "positions", "pos"} and shape:
        positions = np.broadcast_to(np.arange(shape[-1]), shape)
        return positions if spec.bound is None else positions % max(1, spec.bound)
    if spec.bound is not None:
        return random.integers(0, max(1, spec.bound), shape)
    if words & _TIMES:
        return random.integers(0, 1000, shape)
    if words & _POSITIVE:
        return random.integers(1, _SMALL_IDS, shape)
    if len(shape) == 4:
        return random.integers(0, 128, shape)
    return random.integers(0, _SMALL_IDS, shape)


def _unit(random: Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return random.uniform(0, 1, shape)


def _positive(random: Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return random.uniform(1, 60, shape)


_TIMES = frozenset({"t", "time", "times", "timestep", "timesteps", "sigma", "sigmas"})
_POSITIVE = frozenset({"seconds", "duration", "durations", "length", "lengths", "len", "lens", "size", "sizes"})
_STATES = frozenset({"h", "c", "h0", "c0", "hn", "cn", "state"})
_IMAGES = frozenset({"image", "images", "img", "pixel", "pixels"})
_FLOATS: tuple[tuple[frozenset[str], Callable[[Generator, tuple[int, ...]], NDArray[np.float64]]], ...] = (
    (_TIMES, _unit),
    (_POSITIVE, _positive),
    (_IMAGES, _unit),
)
