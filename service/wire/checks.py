"""What can be judged only when the whole file has been walked."""

from collections import Counter

from service.wire.limits import MAX_IR_VERSION, MAX_OPSET, MIN_IR_VERSION, MIN_OPSET
from service.wire.refusal import WireError, show
from service.wire.tally import Tally

_ONNX = (b"", b"ai.onnx")


def check_model(tally: Tally, size: int) -> list[str]:
    """Warnings. Faults: not-onnx, unsupported-opset, ambiguous-protobuf, invalid-graph."""
    _check_whole(tally, size)
    _check_ir_version(tally)
    _check_opsets(tally)
    _check_interface(tally)
    return _warnings(tally)


def _check_whole(tally: Tally, size: int) -> None:
    if not tally.has_graph:
        raise WireError(
            "not-onnx", f"There is no graph in these {size} bytes. Upload the whole `.onnx` file.", offset=size
        )
    if tally.nodes == 0:
        raise WireError("not-onnx", "The graph has no nodes: there is nothing to convert or build.")
    if not tally.opsets and tally.ir_version is not None:
        raise WireError(
            "not-onnx",
            f"The file ends at byte {size} without the opset_import that every model has: it is cut. "
            "Upload the whole file.",
            offset=size,
        )


def _check_ir_version(tally: Tally) -> None:
    if tally.ir_version is None:
        raise _unsupported("The model has no ir_version")
    if not MIN_IR_VERSION <= tally.ir_version <= MAX_IR_VERSION:
        raise _unsupported(
            f"The model has ir_version {tally.ir_version}; {MIN_IR_VERSION} to {MAX_IR_VERSION} are known"
        )


def _check_opsets(tally: Tally) -> None:
    versions: dict[bytes, int] = {}
    for domain, version in tally.opsets:
        plain = b"" if domain in _ONNX else domain
        if versions.setdefault(plain, version) != version:
            raise WireError(
                "ambiguous-protobuf",
                f"The model imports domain {show(domain or b'ai.onnx')} in versions {versions[plain]} and {version}. "
                "Export it again with one.",
            )
        if version < 1 or version >= 2**31:
            raise _unsupported(f"The model imports domain {show(domain)} in version {version}")
    _check_onnx_opset(versions.get(b""), any(domain in _ONNX for domain, _ in tally.operators))


def _check_onnx_opset(version: int | None, used: bool) -> None:
    if version is None and used:
        raise _unsupported("The model uses operators of ai.onnx but imports no opset for it")
    if version is not None and not MIN_OPSET <= version <= MAX_OPSET:
        raise _unsupported(f"The model has opset {version}; {MIN_OPSET} to {MAX_OPSET} are supported")


def _check_interface(tally: Tally) -> None:
    if not tally.outputs:
        raise WireError("invalid-graph", "The graph has no outputs. Mark at least one when you export it.")
    for what, values in (("inputs", tally.inputs), ("outputs", tally.outputs)):
        name, times = Counter(value.name for value in values).most_common(1)[0] if values else (b"", 0)
        if times > 1:
            raise WireError("invalid-graph", f"Two of the graph's {what} are named {show(name)}. Export it again.")


def _warnings(tally: Tally) -> list[str]:
    imported = {domain for domain, _ in tally.opsets}
    domains = sorted({domain for domain, _ in tally.operators} - imported - set(_ONNX))
    return [f"nodes use domain {show(domain)}, of which no opset is imported" for domain in domains]


def _unsupported(what: str) -> WireError:
    return WireError("unsupported-opset", f"{what}. Export it with opset {MIN_OPSET} to {MAX_OPSET}.")
