"""Wall time, CPU time and peak memory of a command and everything it starts; medians of interleaved runs."""

import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLE_SECONDS = 0.01
_OUTPUT_TAIL = 2000
_HIGH_WATER = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: seconds, peak resident bytes (VmHWM, which no sampling misses) summed over the process tree, seconds of
    all its cores, and how it ended (`error` empty: well)."""

    seconds: float
    peak_rss: int
    error: str = ""
    cpu_seconds: float = 0.0


def measure(command: Sequence[str]) -> Run:
    """Run a command to its end. Which processes there are is looked at every 10 ms."""
    with tempfile.TemporaryFile() as output:
        start, cpu = time.perf_counter(), _children_cpu()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        peaks: dict[int, int] = {}
        while process.poll() is None:
            peaks.update(tree_peaks(process.pid))
            time.sleep(_SAMPLE_SECONDS)
        seconds = time.perf_counter() - start
        output.seek(max(0, output.tell() - _OUTPUT_TAIL))
        tail = output.read().decode(errors="replace").strip()
    error = "" if process.returncode == 0 else _last_line(tail, process.returncode)
    return Run(seconds, sum(peaks.values()), error, _children_cpu() - cpu)


def tree_peaks(pid: int) -> dict[int, int]:
    """The largest resident size so far, in bytes, of a process and its descendants; those that have ended are left
    out."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return {}
    return {process.pid: peak for process in family if (peak := _peak(process.pid))}


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
        cpu_seconds=statistics.median(run.cpu_seconds for run in runs),
    )


def _peak(pid: int) -> int:
    with suppress(OSError):
        found = _HIGH_WATER.search(Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) << 10 if found else 0
    return 0


def _children_cpu() -> float:
    """Seconds of all cores, of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_line(tail: str, code: int) -> str:
    return tail.splitlines()[-1] if tail else f"exit code {code}"
