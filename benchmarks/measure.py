"""Wall time and peak memory of a command and everything it starts; medians of interleaved runs."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psutil

_SAMPLE_SECONDS = 0.01
_OUTPUT_TAIL = 2000


@dataclass(frozen=True, slots=True)
class Run:
    """One run: seconds, peak resident bytes summed over the process tree, and how it ended (`error` empty: well)."""

    seconds: float
    peak_rss: int
    error: str = ""


def measure(command: Sequence[str]) -> Run:
    """Run a command to its end. Memory is sampled every 10 ms."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        peak = 0
        while process.poll() is None:
            peak = max(peak, tree_rss(process.pid))
            time.sleep(_SAMPLE_SECONDS)
        seconds = time.perf_counter() - start
        output.seek(max(0, output.tell() - _OUTPUT_TAIL))
        tail = output.read().decode(errors="replace").strip()
    return Run(seconds, peak, error="" if process.returncode == 0 else _last_line(tail, process.returncode))


def tree_rss(pid: int) -> int:
    """Resident bytes of a process and its descendants; those that have just ended count as nothing."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    return sum(_rss(process) for process in family)


def interleaved(subjects: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, Run]:
    """Each subject once a round, so that a slow minute of the machine hits all of them. Medians of what went well."""
    runs: dict[str, list[Run]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            runs[name].append(subject())
    return {name: median(done) for name, done in runs.items()}


def median(runs: Sequence[Run]) -> Run:
    """The median of each figure; the first error stays."""
    return Run(
        seconds=statistics.median(run.seconds for run in runs),
        peak_rss=int(statistics.median(run.peak_rss for run in runs)),
        error=next((run.error for run in runs if run.error), ""),
    )


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _last_line(tail: str, code: int) -> str:
    return tail.splitlines()[-1] if tail else f"exit code {code}"
