"""The values that pass between the steps of a build: conversion, checking, engine building, inspection."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """What to convert, and how. `keep_fp32` and `keep_trunk` are globs over node names, or operator types."""

    source: Path
    target: Path
    mode: str = "rope"
    trunk: str = "fp16"
    bounded_attention: bool = True
    keep_fp32: tuple[str, ...] = ()
    keep_trunk: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What to build. `archs` empty: the toolchain's default. Profiles: input -> (min, opt, max) shapes."""

    onnx: Path
    target: Path
    toolchain: str
    arch: str
    profiles: tuple[Mapping[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]], ...] = ()
    workspace_bytes: int = 16 << 30
    optimization_level: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuilderMessage:
    """A line of TensorRT's log, without the noise that a missing GPU adds."""

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What was built, and what reading it back showed. Sizes in bytes, times in seconds, memory as peak RSS in bytes."""

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
