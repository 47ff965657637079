"""Every converter on every model: convert, judge, and keep what was found as values."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.batch import BatchBroken, Outcome, run_batch
from benchmarks.peers.catalogue import Peer
from benchmarks.peers.environments import PeerMissing, python_of, versions_of
from benchmarks.peers.models import RealModel

OPERATOR_SECONDS = 60.0
REAL_SECONDS = 600.0
ROUNDS = 3

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer and the command that starts it; `absent` says why it cannot run, and then there is no command."""

    peer: Peer
    command: tuple[str, ...] = ()
    versions: str = ""
    absent: str = ""


@dataclass(frozen=True, slots=True)
class OperatorFinding:
    """What a converter made of an operator test. Texts are empty where all is well.

    What was not converted has all the other faults too. `reordered`: what the checker says once the nodes are in order.
    `parse` is None where FP32 is refused as well.
    """

    name: str
    seconds: float
    cpu_seconds: float
    converts: str
    checker: str
    reordered: str
    interface: str
    right: str
    half: bool
    parse: str | None

    @property
    def correct(self) -> bool:
        return not self.checker and self.correct_in_order

    @property
    def correct_in_order(self) -> bool:
        return not (self.converts or self.reordered or self.interface or self.right)


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


@dataclass(frozen=True, slots=True)
class OperatorTest:
    """A test that takes part. `inputs`: the folder with its .npz file, where there is one."""

    name: str
    folder: Path
    valid: bool
    parses: bool
    inputs: Path | None

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"


def enter(peer: Peer, cache: Path, reference: Path | None) -> Contender:
    """The peer ready to run, or why it is not."""
    if peer.name == "reference" and reference is None:
        return Contender(peer, absent="its script was not given (--reference)")
    script = [str(reference)] if peer.name == "reference" else []
    try:
        python = python_of(peer, cache)
        command = (str(python), "-m", "benchmarks.peers.converting", peer.name, *script)
        list(run_batch(command, {}, 0))
        return Contender(peer, command, versions_of(peer, python))
    except (PeerMissing, BatchBroken) as reason:
        return Contender(peer, absent=str(reason))


# --- operator tests --------------------------------------------------------------------------------------------------


def tests_taking_part(folders: Mapping[str, Path], work: Path, say: Say) -> list[OperatorTest]:
    """Those with FP32 inputs that run, and give the same twice."""
    say(f"surveying {len(folders)} operator tests")
    inputs = _targets(work, folders, "inputs.npz")
    jobs = {name: {"folder": str(folder), "inputs": str(inputs[name])} for name, folder in folders.items()}
    surveyed = _judge("survey", jobs, OPERATOR_SECONDS)
    part = {name: found.result for name, found in surveyed.items() if found.result and found.result["takes_part"]}
    parsed = _judge("parse", {name: {"model": str(folders[name] / "model.onnx")} for name in part}, OPERATOR_SECONDS)
    return [
        OperatorTest(name, folders[name], facts["valid"], _accepts(parsed[name]), _folder_with(inputs[name]))
        for name, facts in part.items()
    ]


def compare_operators(
    contender: Contender, tests: Sequence[OperatorTest], work: Path, say: Say
) -> list[OperatorFinding]:
    """One finding a test, in order."""
    say(f"{contender.peer.name}: {len(tests)} operator tests")
    targets = _targets(work, [test.name for test in tests])
    jobs = {test.name: _conversion_job(test.model, targets[test.name], test.inputs) for test in tests}
    converted = {outcome.name: outcome for outcome in run_batch(contender.command, jobs, OPERATOR_SECONDS)}
    done = [test for test in tests if not _conversion_fault(converted[test.name], targets[test.name])]
    judged = _judge(
        "operator",
        {
            test.name: {"folder": str(test.folder), "target": str(targets[test.name]), "valid": test.valid}
            for test in done
        },
        OPERATOR_SECONDS,
    )
    parsing = {test.name: {"model": str(targets[test.name])} for test in done if test.parses}
    parsed = _judge("parse", parsing, OPERATOR_SECONDS)
    return [
        _operator_finding(test, converted[test.name], targets[test.name], judged.get(test.name), parsed.get(test.name))
        for test in tests
    ]


def _operator_finding(
    test: OperatorTest, converted: Outcome, target: Path, judged: Outcome | None, parsed: Outcome | None
) -> OperatorFinding:
    fault = _conversion_fault(converted, target)
    facts = _facts(judged, fault, ("checker", "reordered", "interface", "right"))
    return OperatorFinding(
        name=test.name,
        seconds=converted.seconds,
        cpu_seconds=converted.cpu_seconds,
        converts=fault,
        checker=facts["checker"],
        reordered=facts["reordered"],
        interface=facts["interface"],
        right=facts["right"],
        half=facts.get("half", False),
        parse=_facts(parsed, fault, ("parse",))["parse"] if test.parses else None,
    )


# --- real models -----------------------------------------------------------------------------------------------------


def baselines(models: Sequence[RealModel], say: Say) -> dict[str, Baseline]:
    """What TensorRT for RTX does with each model as it is."""
    say(f"FP32: {len(models)} models")
    engines = _engines(models, {model.name: model.path for model in models})
    return {name: Baseline(facts["parse"], facts["build"]) for name, facts in engines.items()}


def compare_real(
    contenders: Sequence[Contender], models: Sequence[RealModel], work: Path, say: Say
) -> dict[str, list[RealFinding]]:
    """By converter, one finding a model, in order. Each converts once a round, so that a slow minute hits all alike."""
    known = baselines(models, say)
    inputs = _samples(models, work)
    targets = {each.peer.name: _targets(work / each.peer.name, [model.name for model in models]) for each in contenders}
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
    faults = {name: _conversion_fault(outcome, targets[name]) for name, outcome in rounds[-1].items()}
    done = [model for model in models if not faults[model.name]]
    say(f"judging {len(done)} models")
    judged = _judge("real", {model.name: _real_job(model, targets[model.name]) for model in done}, REAL_SECONDS)
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
    facts = _facts(judged, fault, ("checker", "reordered", "interface", "close"))
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


def _samples(models: Sequence[RealModel], work: Path) -> dict[str, Path | None]:
    """A folder with a file of typical inputs, for each model."""
    files = _targets(work / "samples", [model.name for model in models], "inputs.npz")
    jobs = {model.name: {**_build_job(model, model.path), **_values(model)} for model in models}
    _judge("sample", {name: {**job, "inputs": str(files[name])} for name, job in jobs.items()}, REAL_SECONDS)
    return {name: _folder_with(file) for name, file in files.items()}


def _converted(
    contender: Contender,
    models: Sequence[RealModel],
    targets: Mapping[str, Path],
    inputs: Mapping[str, Path | None],
) -> dict[str, Outcome]:
    jobs = {model.name: _conversion_job(model.path, targets[model.name], inputs[model.name]) for model in models}
    return {outcome.name: outcome for outcome in run_batch(contender.command, jobs, REAL_SECONDS)}


def _engines(models: Sequence[RealModel], paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Parsed and built; of what the parser refuses no engine can be."""
    parsed = _judge("parse", {model.name: {"model": str(paths[model.name])} for model in models}, REAL_SECONDS)
    built = _judge("build", {model.name: _build_job(model, paths[model.name]) for model in models}, REAL_SECONDS)
    return {
        model.name: {**_facts(parsed[model.name], "", ("parse",)), **_facts(built[model.name], "", ("build",))}
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


# --- jobs and answers ------------------------------------------------------------------------------------------------


def _judge(judge: str, jobs: Mapping[str, Mapping[str, Any]], limit: float) -> dict[str, Outcome]:
    command = (sys.executable, "-m", "benchmarks.peers.judging", judge)
    return {outcome.name: outcome for outcome in run_batch(command, jobs, limit)}


def _conversion_job(source: Path, target: Path, inputs: Path | None) -> dict[str, Any]:
    return {"source": str(source), "target": str(target), "inputs": None if inputs is None else str(inputs)}


def _targets(work: Path, names: Iterable[str], file: str = "converted.onnx") -> dict[str, Path]:
    """A folder for each result, as some come with files of external data."""
    targets = {name: work / name / file for name in names}
    for target in targets.values():
        target.parent.mkdir(parents=True, exist_ok=True)
    return targets


def _folder_with(file: Path) -> Path | None:
    return file.parent if file.is_file() else None


def _conversion_fault(outcome: Outcome, target: Path) -> str:
    return outcome.error or ("" if target.is_file() else "wrote no file")


def _accepts(outcome: Outcome) -> bool:
    return outcome.result is not None and not outcome.result["parse"]


def _facts(judged: Outcome | None, fault: str, texts: Sequence[str]) -> Mapping[str, Any]:
    """The judge's answer, or its own death or the failed conversion as the fault in each text."""
    if judged is not None and judged.result is not None:
        return judged.result
    return dict.fromkeys(texts, fault or (judged.error if judged else ""))
