"""Every converter on every real model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.batch import Outcome, run_batch
from benchmarks.peers.contenders import Contender
from benchmarks.peers.jobs import Say, conversion_fault, conversion_job, facts_of, folder_with, judge, targets_in
from benchmarks.peers.models import RealModel

REAL_SECONDS = 600.0
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Baseline:
    """What TensorRT for RTX does with the FP32 file; texts as above."""

    parse: str
    build: str


@dataclass(frozen=True, slots=True)
class RealFinding:
    """What a converter made of a real model; texts as above. `fused`: attentions in the engine."""

    model: RealModel
    baseline: Baseline
    seconds: float
    cpu_seconds: float
    converts: str
    checker: str
    reordered: str
    interface: str
    close: str
    cosine: float | None
    parse: str
    build: str
    fused: int
    norm_warning: bool

    @property
    def good(self) -> bool:
        """Valid, close, and taken wherever FP32 is."""
        return not self.checker and self.good_in_order

    @property
    def good_in_order(self) -> bool:
        return not (self.converts or self.reordered or self.interface or self.close or self.lost_by_tensorrt)

    @property
    def lost_by_tensorrt(self) -> str:
        """What TensorRT refuses now, and takes in FP32."""
        refused = "" if self.baseline.parse else self.parse
        return refused or ("" if self.baseline.build else self.build)


def compare_real(
    contenders: Sequence[Contender], models: Sequence[RealModel], work: Path, say: Say
) -> dict[str, list[RealFinding]]:
    """By converter, one finding a model, in order. Each converts once a round, so that a slow minute hits all alike."""
    known = baselines(models, say)
    inputs = _samples(models, work)
    targets = {
        each.peer.name: targets_in(work / each.peer.name, [model.name for model in models]) for each in contenders
    }
    rounds: dict[str, list[dict[str, Outcome]]] = {name: [] for name in targets}
    for number in range(ROUNDS):
        for each in contenders:
            say(f"{each.peer.name}: {len(models)} models, round {number + 1} of {ROUNDS}")
            rounds[each.peer.name].append(_converted(each, models, targets[each.peer.name], inputs))
    return {name: judge_real(models, known, rounds[name], targets[name], say) for name in targets}


def judge_real(
    models: Sequence[RealModel],
    known: Mapping[str, Baseline],
    rounds: Sequence[Mapping[str, Outcome]],
    targets: Mapping[str, Path],
    say: Say,
) -> list[RealFinding]:
    """What one converter's results are worth; times are medians of the rounds."""
    faults = {name: conversion_fault(outcome, targets[name]) for name, outcome in rounds[-1].items()}
    done = [model for model in models if not faults[model.name]]
    say(f"judging {len(done)} models")
    judged = judge("real", {model.name: _real_job(model, targets[model.name]) for model in done}, REAL_SECONDS)
    engines = _engines(done, targets)
    return [
        _real_finding(
            model,
            known[model.name],
            [outcomes[model.name] for outcomes in rounds],
            faults[model.name],
            judged.get(model.name),
            engines.get(model.name),
        )
        for model in models
    ]


def _real_finding(
    model: RealModel,
    baseline: Baseline,
    rounds: Sequence[Outcome],
    fault: str,
    judged: Outcome | None,
    engine: Mapping[str, Any] | None,
) -> RealFinding:
    facts = facts_of(judged, fault, ("checker", "reordered", "interface", "close"))
    engine = engine or {"parse": fault, "build": fault}
    return RealFinding(
        model=model,
        baseline=baseline,
        seconds=median(outcome.seconds for outcome in rounds),
        cpu_seconds=median(outcome.cpu_seconds for outcome in rounds),
        converts=fault,
        checker=facts["checker"],
        reordered=facts["reordered"],
        interface=facts["interface"],
        close=facts["close"],
        cosine=facts.get("cosine"),
        parse=engine["parse"],
        build=engine["build"],
        fused=engine.get("fused") or 0,
        norm_warning=engine.get("norm_warning", False),
    )


def baselines(models: Sequence[RealModel], say: Say) -> dict[str, Baseline]:
    """What TensorRT for RTX does with each model as it is."""
    say(f"FP32: {len(models)} models")
    engines = _engines(models, {model.name: model.path for model in models})
    return {name: Baseline(facts["parse"], facts["build"]) for name, facts in engines.items()}


def _samples(models: Sequence[RealModel], work: Path) -> dict[str, Path | None]:
    """A folder with a file of typical inputs, for each model."""
    files = targets_in(work / "samples", [model.name for model in models], "inputs.npz")
    jobs = {model.name: {**_build_job(model, model.path), **_values(model)} for model in models}
    judge("sample", {name: {**job, "inputs": str(files[name])} for name, job in jobs.items()}, REAL_SECONDS)
    return {name: folder_with(file) for name, file in files.items()}


def _converted(
    contender: Contender,
    models: Sequence[RealModel],
    targets: Mapping[str, Path],
    inputs: Mapping[str, Path | None],
) -> dict[str, Outcome]:
    jobs = {model.name: conversion_job(model.path, targets[model.name], inputs[model.name]) for model in models}
    return {outcome.name: outcome for outcome in run_batch(contender.command, jobs, REAL_SECONDS)}


def _engines(models: Sequence[RealModel], paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Parsed and built; of what the parser refuses no engine can be."""
    parsed = judge("parse", {model.name: {"model": str(paths[model.name])} for model in models}, REAL_SECONDS)
    built = judge("build", {model.name: _build_job(model, paths[model.name]) for model in models}, REAL_SECONDS)
    return {
        model.name: {**facts_of(parsed[model.name], "", ("parse",)), **facts_of(built[model.name], "", ("build",))}
        for model in models
    }


def _real_job(model: RealModel, target: Path) -> dict[str, Any]:
    return {"source": str(model.path), "target": str(target), **_shapes(model), **_values(model)}


def _build_job(model: RealModel, path: Path) -> dict[str, Any]:
    return {"model": str(path), **_shapes(model)}


def _shapes(model: RealModel) -> dict[str, Any]:
    return {"shapes": {name: list(shape) for name, shape in model.shapes.items()}}


def _values(model: RealModel) -> dict[str, Any]:
    return {"values": dict(model.values)}
