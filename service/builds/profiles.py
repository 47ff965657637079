"""From what a request says about shapes to complete profiles, or to the list of everything that is wrong with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.builds.types import Profile, ShapeRange
from service.errors import InvalidOptions, MissingProfile
from service.wire.types import Dim, TensorInfo


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: `where` it is, what it is, and whether it is a range that was left out."""

    where: str
    message: str
    missing: bool = False


def resolve_profiles(
    inputs: Sequence[TensorInfo], given: Sequence[Profile], preset: Profile | None = None
) -> tuple[Profile, ...]:
    """Profiles with a range for each dynamic input and nothing else; empty for a static model.

    Ranges of `preset` stand in for inputs that a given profile does not name. Raises MissingProfile or InvalidOptions,
    with all faults at once.
    """
    known = {info.name: info for info in inputs}
    defaults = {name: shape for name, shape in (preset or {}).items() if name in known}
    profiles = [{**defaults, **profile} for profile in given or ({},)]
    faults = [fault for number, profile in enumerate(profiles) for fault in _faults(number, profile, known)]
    if faults:
        raise _error(faults)
    kept = [{name: shape for name, shape in profile.items() if known[name].dynamic} for profile in profiles]
    return tuple(profile for profile in kept if profile)


def _faults(number: int, profile: Profile, known: Mapping[str, TensorInfo]) -> Iterator[Fault]:
    place = f"profiles[{number}]"
    for name in profile.keys() - known.keys():
        yield Fault(f"{place}.{name}", f"the model has no such input; its inputs are {', '.join(sorted(known))}")
    for name, info in known.items():
        shape = profile.get(name)
        if shape is not None:
            yield from _shape_faults(f"{place}.{name}", shape, info)
        elif info.dynamic:
            yield from _missing(f"{place}.{name}", info)
    yield from _symbol_faults(place, profile, known)


def _missing(where: str, info: TensorInfo) -> Iterator[Fault]:
    if info.shape is None:
        yield Fault(where, f"give min, opt and max shapes for input {info.name!r}, whose rank is not declared", True)
        return
    for axis, dim in enumerate(info.shape):
        if not isinstance(dim, int):
            what = f"dimension {axis} ({dim})" if dim else f"dimension {axis}"
            yield Fault(where, f"give a range for {what} of input {info.name!r}, which is dynamic", True)


def _shape_faults(where: str, shape: ShapeRange, info: TensorInfo) -> Iterator[Fault]:
    declared = info.shape
    if declared is None:
        return
    if len(shape.min) != len(declared):
        yield Fault(where, f"has rank {len(shape.min)}, but the input has rank {len(declared)}: {_text(declared)}")
        return
    for axis, dim in enumerate(declared):
        sizes = (shape.min[axis], shape.opt[axis], shape.max[axis])
        if isinstance(dim, int) and sizes != (dim, dim, dim):
            yield Fault(where, f"dimension {axis} is always {dim} in the model, not {_sizes(sizes)}")
        elif not isinstance(dim, int) and 0 in sizes:
            yield Fault(where, f"dimension {axis} is 0 in {_sizes(sizes)}; the smallest size is 1")


def _symbol_faults(place: str, profile: Profile, known: Mapping[str, TensorInfo]) -> Iterator[Fault]:
    """Dimensions that share a symbol have one size at run time, so they need one range."""
    first: dict[str, tuple[str, tuple[int, int, int]]] = {}
    for name, symbol, axis, sizes in _symbols(profile, known):
        where, expected = first.setdefault(symbol, (f"dimension {axis} of {name!r}", sizes))
        if sizes != expected:
            yield Fault(
                f"{place}.{name}",
                f"dimension {axis} is {symbol!r}, as is {where}, so both need one range; "
                f"they have {_sizes(sizes)} and {_sizes(expected)}",
            )


def _symbols(profile: Profile, known: Mapping[str, TensorInfo]) -> Iterator[tuple[str, str, int, tuple[int, int, int]]]:
    for name, info in known.items():
        shape = profile.get(name)
        if shape is None or info.shape is None or len(shape.min) != len(info.shape):
            continue
        for axis, dim in enumerate(info.shape):
            if isinstance(dim, str):
                yield name, dim, axis, (shape.min[axis], shape.opt[axis], shape.max[axis])


def _error(faults: Sequence[Fault]) -> InvalidOptions:
    kind = MissingProfile if all(fault.missing for fault in faults) else InvalidOptions
    listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:20])
    errors = [{"where": fault.where, "message": fault.message} for fault in faults[:100]]
    return kind(f"The profiles do not fit the model. {listed}.", errors=errors)


def _sizes(sizes: tuple[int, int, int]) -> str:
    low, best, high = sizes
    return f"{low}..{best}..{high}"


def _text(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"
