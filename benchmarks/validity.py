"""What a conversion is worth: valid, sorted, strongly typed, built and fused, close to FP32."""

from dataclasses import dataclass
from pathlib import Path

import onnx

from service.errors import AtollError
from worker.engine.run import build_engine, parse_network
from worker.graph import walk
from worker.graph.order import reads
from worker.graph.skeleton import open_skeleton
from worker.types import EngineRequest
from worker.verify.check import verify
from worker.verify.static import check_valid
from worker.verify.types import ShapeTriple, VerifyRequest

_SECONDS = 900.0
_WEIGHT_BYTES = 8 << 30

Profile = dict[str, ShapeTriple]


@dataclass(frozen=True, slots=True)
class Validity:
    """Each text is `yes`, a figure, or what is wrong."""

    checker: str
    sorted: str
    typed: str
    fused_attentions: str
    cosine: str


def assess(source: Path, converted: Path, profile: Profile, toolchain: str = "tensorrt-rtx") -> Validity:
    return Validity(
        checker=_checked(converted),
        sorted=_sorted(open_skeleton(converted).model),
        typed=_parsed(converted, toolchain),
        fused_attentions=_fused(converted, profile, toolchain),
        cosine=_cosine(source, converted, profile),
    )


def _checked(converted: Path) -> str:
    try:
        check_valid(open_skeleton(converted).model)
    except AtollError as error:
        return f"no: {_first_words(error)}"
    return "yes"


def _sorted(model: onnx.ModelProto) -> str:
    """`yes`, or how many nodes come before something they read."""
    early = 0
    for graph in walk.graphs(model.graph):
        made_here = {name for node in graph.node for name in node.output}
        seen: set[str] = set()
        for node in graph.node:
            early += bool((reads(node) & made_here) - seen)
            seen.update(node.output)
    return "yes" if early == 0 else f"no: {early} nodes too early"


def _parsed(converted: Path, toolchain: str) -> str:
    try:
        parse_network(converted, toolchain, timeout=_SECONDS)
    except AtollError as error:
        return f"no: {_first_words(error)}"
    return "yes"


def _fused(converted: Path, profile: Profile, toolchain: str) -> str:
    target = converted.with_suffix(".engine")
    try:
        result = build_engine(EngineRequest(converted, target, toolchain, "portable", (profile,)), timeout=_SECONDS)
    except AtollError as error:
        return f"no engine: {_first_words(error)}"
    finally:
        target.unlink(missing_ok=True)
    return str(result.fused_attentions)


def _cosine(source: Path, converted: Path, profile: Profile) -> str:
    try:
        verdict = verify(VerifyRequest(source, converted, (profile,), seconds=_SECONDS, weight_bytes=_WEIGHT_BYTES))
    except AtollError as error:
        return f"no: {_first_words(error)}"
    return f"{verdict.cosine:.6f}" if verdict.cosine is not None else f"{verdict.verdict}: {verdict.reason}"


def _first_words(error: AtollError) -> str:
    return " ".join(error.detail.split())[:160]
