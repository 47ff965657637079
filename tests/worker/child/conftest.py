from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def simulated_child_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child is started by its module's name; PYTHONPATH is among the variables that it gets."""
    root = Path(__file__).parents[3]
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{root}")
