"""Build options that only some toolchains know, as a table: checked by name and type before anything is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service.errors import InvalidOptions
from worker.engine.trt import BuilderConfig, TensorRT

VERBOSITIES = ("none", "layer_names_only", "detailed")


@dataclass(frozen=True, slots=True)
class Option:
    """`accepts` says in words what `is_valid` checks; `apply` writes a valid value into the builder's config."""

    accepts: str
    is_valid: Callable[[Any], bool]
    apply: Callable[[TensorRT, BuilderConfig, Any], None]


def _flag(name: str) -> Option:
    def apply(trt: TensorRT, config: BuilderConfig, value: bool) -> None:
        if value:
            config.set_flag(getattr(trt.BuilderFlag, name))

    return Option("true or false", lambda value: isinstance(value, bool), apply)


def _set_verbosity(trt: TensorRT, config: BuilderConfig, value: str) -> None:
    config.profiling_verbosity = getattr(trt.ProfilingVerbosity, value.upper())


# What builds on a machine without a GPU: others of TensorRT's flags need one, or a library that RTX does not ship.
AHEAD_OF_TIME: Mapping[str, Option] = {
    "profiling_verbosity": Option(
        f"one of {', '.join(VERBOSITIES)}", lambda value: value in VERBOSITIES, _set_verbosity
    ),
    "refit_individual": _flag("REFIT_INDIVIDUAL"),
    "sparse_weights": _flag("SPARSE_WEIGHTS"),
    "tf32": _flag("TF32"),
    "weight_streaming": _flag("WEIGHT_STREAMING"),
}
ON_GPU: Mapping[str, Option] = {
    **AHEAD_OF_TIME,
    "refit": _flag("REFIT"),
    "strip_plan": _flag("STRIP_PLAN"),
    "version_compatible": _flag("VERSION_COMPATIBLE"),
}


def check_options(toolchain: str, known: Mapping[str, Option], given: Mapping[str, Any]) -> None:
    """Raises InvalidOptions that names the option and what the toolchain takes."""
    for name, value in given.items():
        option = known.get(name)
        if option is None:
            raise InvalidOptions(f"{toolchain} has no option {name!r}; it has {', '.join(sorted(known))}.", option=name)
        if not option.is_valid(value):
            raise InvalidOptions(f"Option {name!r} is {value!r}; it has to be {option.accepts}.", option=name)
