"""The worker's part of `atoll doctor`: libraries, toolchains, archs and GPUs."""

from collections.abc import Iterator
from importlib import metadata

from service.checks import Check

_LIBRARIES = ("onnx", "onnxruntime", "numpy", "protobuf")
_CURE = "pip install 'atoll[worker]'"


def checks() -> Iterator[Check]:
    """Nothing heavy is imported: versions come from the installed distributions."""
    libraries = [_library(name) for name in _LIBRARIES]
    yield from libraries
    if all(library.health == "ok" for library in libraries):
        yield from _toolchains()


def _library(name: str) -> Check:
    try:
        return Check(name=name, health="ok", detail=metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name=name, health="absent", detail="not installed: no conversion here", cure=_CURE)


def _toolchains() -> Iterator[Check]:
    from worker.engine.toolchains import absent_toolchains, available_toolchains

    for offer in available_toolchains():
        gpu = f", {offer.gpu} (driver {offer.driver})" if offer.gpu else ", no GPU needed"
        detail = f"{offer.version}, {offer.platform}, builds for {', '.join(offer.archs)}{gpu}"
        yield Check(name=offer.toolchain, health="ok", detail=detail)
    for absence in absent_toolchains():
        yield Check(name=absence.what, health="absent", detail=absence.reason, cure=absence.cure)
