"""Our conversion against the floor (one read, one cast, one write), over sizes, on a RAM disk and on a real one.

    python -m benchmarks.convert --gigabytes 0.25 1 1.84 8 --runs 3
    python -m benchmarks.convert --gigabytes 0.25 1.84 --reference build_dit_fp16.py

Each subject runs in a process of its own, once a round; figures are medians. The floor is timed inside its process,
without the start of the interpreter; ours and the reference's include all of it. `start-up` is what importing our
converter takes. What matters are the ratios, taken in one run on one machine; where others use it too, those of CPU
time.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.convert_vs_reference import config_of
from benchmarks.measure import Run, interleaved, measure
from benchmarks.reference_script import add_reference
from worker.examples.audio_dit import write_audio_dit

_RAM_DISK = Path("/dev/shm")
_SPACE = 1.6
"""The model, and one half of it at a time."""
_REFERENCE_MEMORY = 6
"""The one-model script takes about five times the model."""

Runs = dict[str, Run]


def main() -> None:
    options = _options()
    console = Console()
    peaks: list[tuple[float, str, int]] = []
    for folder in options.work:
        for gigabytes in options.gigabytes:
            refusal = _refusal(folder, gigabytes)
            if refusal is not None:
                console.print(f"{gigabytes:g} GB in {_kind(folder)} is left out: {refusal}")
                continue
            runs = _runs(folder, gigabytes, options)
            console.print(_table(f"{gigabytes:g} GB in {_kind(folder)}", runs))
            console.print(*_ratios(runs), sep="\n")
            peaks.append((gigabytes, _kind(folder), runs["ours"].peak_rss))
    for gigabytes, kind, peak in peaks:
        console.print(
            f"peak memory at {gigabytes:g} GB in {kind}: {peak / peaks[0][2]:.2f} of that at {peaks[0][0]:g} GB"
        )


def _runs(folder: Path, gigabytes: float, options: argparse.Namespace) -> Runs:
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source, target = Path(work) / "dit.onnx", Path(work) / "out.onnx"
        write_audio_dit(source, config_of(round(gigabytes * 1000), "torchscript"))
        subjects = {
            "floor": partial(_floor, source, target),
            "start-up": partial(measure, [sys.executable, "-c", "import worker.precision.convert"]),
            "ours": partial(_converted, ["ours"], source, target),
        }
        if options.reference is not None and gigabytes * 1e9 * _REFERENCE_MEMORY < psutil.virtual_memory().available:
            subjects["reference"] = partial(_converted, ["reference", str(options.reference)], source, target)
        return interleaved(subjects, options.runs)


def _floor(source: Path, target: Path) -> Run:
    command = [sys.executable, "-m", "benchmarks.floor_child", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    _clear(target)
    if done.returncode:
        return Run(0.0, 0, error=done.stderr.strip().splitlines()[-1])
    seconds, cpu_seconds = map(float, done.stdout.split())
    return Run(seconds, 0, cpu_seconds=cpu_seconds)


def _converted(converter: list[str], source: Path, target: Path) -> Run:
    run = measure([sys.executable, "-m", "benchmarks.convert_child", *converter, str(source), str(target), "rope"])
    _clear(target)
    return run


def _clear(target: Path) -> None:
    """What was written goes at once: a RAM disk is memory."""
    for path in target.parent.glob(f"{target.name}*"):
        path.unlink()


def _table(title: str, runs: Runs) -> Table:
    table = Table("", "wall, s", "CPU, s", "peak memory, MB", title=title)
    for name, run in runs.items():
        figures = [f"failed: {run.error}"] if run.error else [f"{run.seconds:.2f}", *_more(run)]
        table.add_row(name, *figures)
    return table


def _more(run: Run) -> list[str]:
    """The floor is timed from inside, and its memory is not looked at."""
    return [f"{run.cpu_seconds:.2f}", f"{run.peak_rss / 1e6:.0f}" if run.peak_rss else ""]


def _ratios(runs: Runs) -> list[str]:
    floor, start, ours = runs["floor"], runs["start-up"], runs["ours"]
    if floor.error or ours.error:
        return []
    lines = [
        f"ours / floor: {ours.seconds / floor.seconds:.2f}",
        f"(ours - start-up) / floor: {(ours.seconds - start.seconds) / floor.seconds:.2f}",
        f"(ours - 1 s) / floor: {(ours.seconds - 1) / floor.seconds:.2f}",
        f"(ours - start-up) / floor, CPU time: {(ours.cpu_seconds - start.cpu_seconds) / floor.cpu_seconds:.2f}",
    ]
    reference = runs.get("reference")
    if reference is not None and not reference.error:
        wall, memory = reference.seconds / ours.seconds, reference.peak_rss / ours.peak_rss
        cpu = reference.cpu_seconds / ours.cpu_seconds
        lines.append(f"reference / ours: wall {wall:.1f}, CPU time {cpu:.1f}, peak memory {memory:.1f}")
    return lines


def _refusal(folder: Path, gigabytes: float) -> str | None:
    """Why there is no room for it."""
    if not folder.is_dir():
        return f"there is no folder {folder}"
    needed = gigabytes * 1e9 * _SPACE
    if shutil.disk_usage(folder).free < needed:
        return f"{needed / 1e9:.1f} GB of disk are not free"
    if _kind(folder) == "RAM" and psutil.virtual_memory().available < needed:
        return f"{needed / 1e9:.1f} GB of memory are not free"
    return None


def _kind(folder: Path) -> str:
    return "RAM" if folder.resolve().is_relative_to(_RAM_DISK) else "files"


def _options() -> argparse.Namespace:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folders = [_RAM_DISK, Path(tempfile.gettempdir())]
    cli.add_argument("--gigabytes", type=float, nargs="+", default=[0.25, 1, 1.84, 8], help="sizes of the models")
    cli.add_argument("--work", type=Path, nargs="+", default=folders, help="folders to work in")
    add_reference(cli)
    cli.add_argument("--runs", type=int, default=3, help="rounds; figures are medians")
    return cli.parse_args()


if __name__ == "__main__":
    main()
