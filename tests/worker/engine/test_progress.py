import threading
from typing import Any

from worker.engine.progress import ProgressReporter


def test_the_last_step_before_a_silence_is_told() -> None:
    told: list[dict[str, Any]] = []
    heard = threading.Event()

    def emit(event: dict[str, Any]) -> None:
        told.append(event)
        if event["step"] == 2:
            heard.set()

    with ProgressReporter(emit, interval=0.01) as progress:
        progress.started("timing", 5)
        progress.completed("timing", 0)
        progress.completed("timing", 1)
        assert heard.wait(60)
    assert told[-1] == {"event": "progress", "phase": "timing", "step": 2, "of": 5}


def test_steps_are_not_told_one_by_one() -> None:
    told: list[dict[str, Any]] = []
    with ProgressReporter(told.append, interval=60) as progress:
        for step in range(10_000):
            progress.completed("timing", step)
    assert [event["step"] for event in told] == [10_000]


def test_a_build_without_phases_tells_nothing() -> None:
    told: list[dict[str, Any]] = []
    with ProgressReporter(told.append):
        pass
    assert told == []
