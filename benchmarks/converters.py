"""Converters to half precision side by side, on the same files, by the same judges.

    python -m benchmarks.converters --reference build_dit_fp16.py --markdown docs/converters.md

Each converter works in an environment of its own, in a process that may crash or hang, and is called as its makers
recommend. Environments, wheels and generated models stay in the cache folder.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.contenders import Contender, enter
from benchmarks.peers.jobs import Say
from benchmarks.peers.models import RealModel, generated_models, shipped_models
from benchmarks.peers.operator_comparison import OperatorFinding, compare_operators, tests_taking_part
from benchmarks.peers.operators import operator_tests
from benchmarks.peers.page import page
from benchmarks.peers.real_comparison import RealFinding, compare_real
from benchmarks.peers.tables import Sheet, contender_sheet, model_sheet, operator_sheet, real_sheet
from benchmarks.peers.wheels import WheelMissing
from benchmarks.reference_script import add_reference

MODELS = ("operators", "shipped", "generated")


@dataclass(slots=True)
class Findings:
    """By converter."""

    operators: dict[str, list[OperatorFinding]] = field(default_factory=dict)
    real: dict[str, list[RealFinding]] = field(default_factory=dict)


def main() -> None:
    options = _options()
    console, progress = Console(), Console(stderr=True)
    started, machine = time.monotonic(), _machine()

    def say(text: str) -> None:
        progress.print(f"{time.monotonic() - started:6.0f} s  {text}", highlight=False)

    contenders = [enter(peer, options.cache, options.reference) for peer in PEERS if peer.name in options.peers]
    try:
        findings = compare([each for each in contenders if not each.absent], options, say)
    except WheelMissing as missing:
        sys.exit(f"benchmarks.converters: {missing}")
    sheets = sheets_of(contenders, findings)
    for sheet in sheets:
        console.print(sheet.rich())
    if options.details is not None:
        options.details.write_text(json.dumps(asdict(findings), default=str, indent=1))
    if options.markdown is not None:
        options.markdown.write_text(page(sheets, findings.operators, _command(), machine))


def compare(contenders: Sequence[Contender], options: argparse.Namespace, say: Say) -> Findings:
    """Raises WheelMissing."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as folder:
        if "operators" in options.models:
            tests = tests_taking_part(operator_tests(options.cache, options.operators), Path(folder, "inputs"), say)
            for each in contenders:
                name = each.peer.name
                findings.operators[name] = compare_operators(each, tests, Path(folder, "operators", name), say)
        models = _real_models(options)
        if models:
            findings.real = compare_real(contenders, models, Path(folder, "real"), say)
    return findings


def sheets_of(contenders: Sequence[Contender], findings: Findings) -> list[Sheet]:
    sheets = [contender_sheet(contenders)]
    if findings.operators:
        sheets.append(operator_sheet(findings.operators))
    if findings.real:
        sheets += [real_sheet(findings.real), model_sheet(findings.real)]
    return sheets


def _real_models(options: argparse.Namespace) -> list[RealModel]:
    shipped = list(shipped_models(options.cache)) if "shipped" in options.models else []
    return shipped + (list(generated_models(options.cache)) if "generated" in options.models else [])


def _machine() -> Mapping[str, str]:
    """What the times depend on, and the state of our own converter."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit.stdout.strip() or "unknown",
        "processor": f"{_processor()}, {os.cpu_count()} cores, no GPU used",
        "load at the start": f"{os.getloadavg()[0]:.1f}",
        "memory": f"{psutil.virtual_memory().total >> 30} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _command() -> str:
    """As it was given; of paths outside the folder only the name."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    return " ".join(["python -m benchmarks.converters", *words])


def _options() -> argparse.Namespace:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [peer.name for peer in PEERS]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "atoll", "converters")
    cli.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="default: all three kinds")
    cli.add_argument("--operators", default="*", metavar="GLOB", help="names of the operator tests; default: all")
    cli.add_argument("--peers", nargs="+", choices=names, default=names, help="default: all")
    add_reference(cli)
    cli.add_argument("--markdown", type=Path, metavar="FILE", help="write the page with the tables here")
    cli.add_argument("--details", type=Path, metavar="FILE", help="write every finding here, as JSON")
    cli.add_argument("--cache", type=Path, default=cache, help=f"default: {cache}")
    return cli.parse_args()


if __name__ == "__main__":
    main()
