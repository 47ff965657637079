import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Benchmarks are run from the checkout; no distribution has them."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.measure")


def test_memory_of_descendants_counts(measuring: ModuleType) -> None:
    hold = "import time; block = b'x' * (100 << 20); time.sleep(0.5)"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    run = measuring.measure([sys.executable, "-c", nested])
    assert run.error == ""
    assert run.peak_rss > 100 << 20


@pytest.mark.parametrize(
    ("code", "error"),
    [("raise ValueError('broken')", "ValueError: broken"), ("raise SystemExit(3)", "exit code 3")],
)
def test_a_failure_is_told_by_its_last_line(measuring: ModuleType, code: str, error: str) -> None:
    assert measuring.measure([sys.executable, "-c", code]).error == error


def test_rounds_are_interleaved_and_reported_by_their_median(measuring: ModuleType) -> None:
    order: list[str] = []
    seconds = {"a": iter([1.0, 9.0, 2.0]), "b": iter([4.0, 4.0, 5.0])}

    def subject(name: str) -> object:
        order.append(name)
        return measuring.Run(next(seconds[name]), 7)

    medians = measuring.interleaved({name: lambda name=name: subject(name) for name in "ab"}, rounds=3)
    assert "".join(order) == "ababab"
    assert {name: run.seconds for name, run in medians.items()} == {"a": 2.0, "b": 4.0}
