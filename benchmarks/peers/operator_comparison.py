"""Every converter on every operator test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.batch import Outcome, run_batch
from benchmarks.peers.contenders import Contender
from benchmarks.peers.jobs import Say, conversion_fault, conversion_job, facts_of, folder_with, judge, targets_in

OPERATOR_SECONDS = 60.0


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


def tests_taking_part(folders: Mapping[str, Path], work: Path, say: Say) -> list[OperatorTest]:
    """Those with FP32 inputs that run, and give the same twice."""
    say(f"surveying {len(folders)} operator tests")
    inputs = targets_in(work, folders, "inputs.npz")
    jobs = {name: {"folder": str(folder), "inputs": str(inputs[name])} for name, folder in folders.items()}
    surveyed = judge("survey", jobs, OPERATOR_SECONDS)
    part = {name: found.result for name, found in surveyed.items() if found.result and found.result["takes_part"]}
    parsed = judge("parse", {name: {"model": str(folders[name] / "model.onnx")} for name in part}, OPERATOR_SECONDS)
    return [
        OperatorTest(name, folders[name], facts["valid"], _accepts(parsed[name]), folder_with(inputs[name]))
        for name, facts in part.items()
    ]


def compare_operators(
    contender: Contender, tests: Sequence[OperatorTest], work: Path, say: Say
) -> list[OperatorFinding]:
    """One finding a test, in order."""
    say(f"{contender.peer.name}: {len(tests)} operator tests")
    targets = targets_in(work, [test.name for test in tests])
    jobs = {test.name: conversion_job(test.model, targets[test.name], test.inputs) for test in tests}
    converted = {outcome.name: outcome for outcome in run_batch(contender.command, jobs, OPERATOR_SECONDS)}
    done = [test for test in tests if not conversion_fault(converted[test.name], targets[test.name])]
    judged = judge(
        "operator",
        {
            test.name: {"folder": str(test.folder), "target": str(targets[test.name]), "valid": test.valid}
            for test in done
        },
        OPERATOR_SECONDS,
    )
    parsing = {test.name: {"model": str(targets[test.name])} for test in done if test.parses}
    parsed = judge("parse", parsing, OPERATOR_SECONDS)
    return [
        _operator_finding(test, converted[test.name], targets[test.name], judged.get(test.name), parsed.get(test.name))
        for test in tests
    ]


def _operator_finding(
    test: OperatorTest, converted: Outcome, target: Path, judged: Outcome | None, parsed: Outcome | None
) -> OperatorFinding:
    fault = conversion_fault(converted, target)
    facts = facts_of(judged, fault, ("checker", "reordered", "interface", "right"))
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
        parse=facts_of(parsed, fault, ("parse",))["parse"] if test.parses else None,
    )


def _accepts(outcome: Outcome) -> bool:
    return outcome.result is not None and not outcome.result["parse"]
