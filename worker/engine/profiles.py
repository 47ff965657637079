"""Optimization profiles, checked against the network before TensorRT sees them: its own messages name no dimension."""

from collections.abc import Mapping, Sequence

from service.errors import InvalidOptions, MissingProfile
from worker.engine.tensors import TensorFacts

ShapeTriple = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Profile = Mapping[str, ShapeTriple]
BOUNDS = ("min", "opt", "max")


def check_profiles(inputs: Sequence[TensorFacts], profiles: Sequence[Profile]) -> None:
    """Raises MissingProfile for an input without a range, InvalidOptions for a range that cannot be."""
    _require_ranges(inputs, profiles or ({},))
    for index, profile in enumerate(profiles):
        _refuse_unknown(inputs, index, profile)
        for tensor in inputs:
            if tensor.name in profile:
                _check_range(tensor, index, profile[tensor.name])
        _check_shared_dims(inputs, index, profile)


def _require_ranges(inputs: Sequence[TensorFacts], profiles: Sequence[Profile]) -> None:
    for index, profile in enumerate(profiles):
        missing = [tensor for tensor in inputs if tensor.needs_range and tensor.name not in profile]
        if missing:
            where = "; ".join(map(_what_is_dynamic, missing))
            raise MissingProfile(
                f"Profile {index} has no range for {where}. Give min, opt and max shapes for each of these inputs.",
                profile=index,
                inputs=[{"name": tensor.name, "shape": tensor.shape, "dims": tensor.dims} for tensor in missing],
            )


def _what_is_dynamic(tensor: TensorFacts) -> str:
    if tensor.is_shape_tensor:
        return f"input {tensor.name!r} (its values are a shape)"
    dims = tensor.dims
    axes = [f"{axis} ({dims[axis]})" if dims[axis] else str(axis) for axis in tensor.dynamic_axes]
    return f"input {tensor.name!r}, dimension {', '.join(axes)}"


def _refuse_unknown(inputs: Sequence[TensorFacts], index: int, profile: Profile) -> None:
    names = [tensor.name for tensor in inputs]
    for name in profile:
        if name not in names:
            raise InvalidOptions(
                f"Profile {index} has a range for {name!r}, but there is no such input; there are {', '.join(names)}.",
                profile=index,
                input=name,
            )


def _check_range(tensor: TensorFacts, index: int, triple: ShapeTriple) -> None:
    where = f"Profile {index}, input {tensor.name!r}"
    fixed = _lengths(tensor)
    for bound, sizes in zip(BOUNDS, triple, strict=True):
        if len(sizes) != len(fixed):
            raise _invalid(tensor, index, f"{where}: {bound} has {len(sizes)} values; {len(fixed)} are needed.")
    for axis, (low, best, high) in enumerate(zip(*triple, strict=True)):
        if not low <= best <= high:
            raise _invalid(tensor, index, f"{where}, dimension {axis}: {low} <= {best} <= {high} does not hold.")
        if fixed[axis] != -1 and not low == high == fixed[axis]:
            detail = f"{where}, dimension {axis} is fixed at {fixed[axis]}; the range says {low} to {high}."
            raise _invalid(tensor, index, detail)


def _lengths(tensor: TensorFacts) -> list[int]:
    """The sizes that a range has to respect: of a shape tensor each value is free."""
    if not tensor.is_shape_tensor:
        return list(tensor.shape)
    return [-1] * (tensor.shape[0] if tensor.shape else 1)


def _check_shared_dims(inputs: Sequence[TensorFacts], index: int, profile: Profile) -> None:
    """Dimensions of one name are one size: TensorRT refuses ranges that disagree, naming neither input."""
    seen: dict[str, tuple[str, tuple[int, ...]]] = {}
    for tensor in inputs:
        if tensor.name not in profile or tensor.is_shape_tensor:
            continue
        for axis in tensor.dynamic_axes:
            name = tensor.dims[axis]
            sizes = tuple(shape[axis] for shape in profile[tensor.name])
            other, expected = seen.setdefault(name or f"{tensor.name}[{axis}]", (tensor.name, sizes))
            if sizes != expected:
                detail = (
                    f"Profile {index}: dimension {name!r} is {_triple(expected)} in input {other!r} and "
                    f"{_triple(sizes)} in input {tensor.name!r}; it is one dimension and needs one range."
                )
                raise _invalid(tensor, index, detail)


def _triple(sizes: tuple[int, ...]) -> str:
    return "/".join(map(str, sizes))


def _invalid(tensor: TensorFacts, index: int, detail: str) -> InvalidOptions:
    return InvalidOptions(detail, profile=index, input=tensor.name)
