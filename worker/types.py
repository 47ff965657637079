"""The values that pass between the steps of a build: conversion, checking, engine building, inspection."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
ShapeTriple = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The smallest, best and largest shape of an input."""


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """What to convert, and how. `keep_fp32` and `keep_trunk` are globs over node names, or operator types.

    `profiles`: input -> (min, opt, max) shapes; sums are judged at the largest.
    For mode `auto`: `target_cosine` to meet, on the user's `samples` (files, see `worker.verify.samples`) or on inputs
    generated for the profiles; `search_seconds` and `search_memory_bytes` (resident) bound the search, beyond which it
    falls back to mode rope.
    """

    source: Path
    target: Path
    mode: str = "rope"
    trunk: str = "fp16"
    bounded_attention: bool = True
    keep_fp32: tuple[str, ...] = ()
    keep_trunk: tuple[str, ...] = ()
    target_cosine: float = 0.999
    profiles: tuple[Mapping[str, ShapeTriple], ...] = ()
    samples: tuple[Path, ...] = ()
    search_seconds: float = 1800.0
    search_memory_bytes: int = 16 << 30

    @property
    def max_shapes(self) -> dict[str, tuple[int, ...]]:
        """The largest shape of each input over all profiles, axis by axis."""
        largest: dict[str, tuple[int, ...]] = {}
        for profile in self.profiles:
            for name, (_, _, shape) in profile.items():
                known = largest.get(name, shape)
                largest[name] = tuple(map(max, known, shape))
        return largest


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What to build. `archs` empty: the toolchain's default. Profiles: input -> (min, opt, max) shapes."""

    onnx: Path
    target: Path
    toolchain: str
    arch: str
    profiles: tuple[Mapping[str, ShapeTriple], ...] = ()
    workspace_bytes: int = 16 << 30
    optimization_level: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuilderMessage:
    """A line of TensorRT's log, without the noise that a missing GPU adds.

    `kind` names what is known to matter, like `norm-overflow`; None for the rest.
    """

    severity: Severity
    text: str
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """What TensorRT's parser made of a graph.

    Inputs and outputs: `name`, `dtype`, `shape` (-1 where dynamic), `dims` (names or None), `is_shape_tensor` (of
    such an input a profile gives the values). `tensor_dtypes` counts the tensors that layers produce, constants left
    out, by TensorRT's dtype in lower case (`half`, `bf16`, `float`, …).
    """

    layers: int
    inputs: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...]
    tensor_dtypes: Mapping[str, int]
    messages: tuple[BuilderMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What was built, and what reading it back showed. Sizes in bytes, times in seconds, memory as peak RSS in bytes.

    `fused_attentions` counts those of one profile; None where the toolchain's engines cannot be read. `tensor_dtypes`
    as in NetworkFacts. `workspace_bytes` is what the builder really had.
    """

    engine: Path
    size: int
    toolchain: str
    toolchain_version: str
    platform: str
    arch: str
    seconds: float
    peak_rss: int
    profiles: int
    fused_attentions: int | None
    messages: tuple[BuilderMessage, ...] = ()
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    gpu: str | None = None
    driver: str | None = None
    tensor_dtypes: Mapping[str, int] = field(default_factory=dict)
    workspace_bytes: int | None = None
