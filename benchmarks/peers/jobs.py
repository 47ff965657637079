"""What conversion and judging have in common: jobs, where results lie, and what an answer says."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.batch import Outcome, run_batch

Say = Callable[[str], None]


def judge(name: str, jobs: Mapping[str, Mapping[str, Any]], limit: float) -> dict[str, Outcome]:
    """What a judge says, by name of the job; `limit`: seconds that one may take."""
    command = (sys.executable, "-m", "benchmarks.peers.judging", name)
    return {outcome.name: outcome for outcome in run_batch(command, jobs, limit)}


def conversion_job(source: Path, target: Path, inputs: Path | None) -> dict[str, Any]:
    """As `converting` takes it."""
    return {"source": str(source), "target": str(target), "inputs": None if inputs is None else str(inputs)}


def targets_in(work: Path, names: Iterable[str], file: str = "converted.onnx") -> dict[str, Path]:
    """A folder for each result, as some come with files of external data."""
    targets = {name: work / name / file for name in names}
    for target in targets.values():
        target.parent.mkdir(parents=True, exist_ok=True)
    return targets


def folder_with(file: Path) -> Path | None:
    """Where the file is, if it is."""
    return file.parent if file.is_file() else None


def conversion_fault(outcome: Outcome, target: Path) -> str:
    """Why there is no result; empty where there is one."""
    return outcome.error or ("" if target.is_file() else "wrote no file")


def facts_of(judged: Outcome | None, fault: str, texts: Sequence[str]) -> Mapping[str, Any]:
    """The judge's answer, or its own death or the failed conversion as the fault in each text."""
    if judged is not None and judged.result is not None:
        return judged.result
    return dict.fromkeys(texts, fault or (judged.error if judged else ""))
