import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    environment.pop("ATOLL_BENCH_REFERENCE", None)
    command = [sys.executable, "-m", "benchmarks.convert_vs_reference", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_without_a_reference_ours_is_measured_and_judged(tmp_path: Path) -> None:
    result = run("--megabytes", "28", "--runs", "1", "--length", "32", "--work", str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "No reference script: give --reference or set ATOLL_BENCH_REFERENCE" in result.stdout
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    figures = {line[0]: line[1] for line in lines}
    assert (figures["conversion"], figures["topologically sorted"], figures["parses strongly typed"]) == (
        "done",
        "yes",
        "yes",
    )
    assert figures["fused attentions"] == "2"
    assert float(figures["cosine under half emulation"]) > 0.9999
    assert list(tmp_path.iterdir()) == []


def test_a_reference_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = run("--reference", str(tmp_path / "none.py"))
    assert result.returncode == 2
    assert "--reference: there is no file" in result.stderr
