import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from service.embedded import process as process_module
from service.embedded.process import Process, ProcessSpec, tail

IGNORES_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up")
time.sleep(60)
"""
HAS_A_CHILD = """
import subprocess, time
print(subprocess.Popen(["sleep", "60"]).pid)
time.sleep(60)
"""


def spec(tmp_path: Path, source: str, stop_seconds: float = 5.0) -> ProcessSpec:
    argv = (sys.executable, "-u", "-c", source)
    return ProcessSpec("part", argv, tmp_path / "part.log", ready=lambda: True, stop_seconds=stop_seconds)


def wait_for_log(log: Path) -> str:
    while not (text := log.read_text().strip()):
        os.sched_yield()
    return text


@pytest.mark.parametrize(
    ("source", "ending"),
    [("raise SystemExit(3)", "exit code 3"), ("import os; os.abort()", "SIGABRT")],
)
def test_ending_says_how_it_ended(tmp_path: Path, source: str, ending: str) -> None:
    process = Process(spec(tmp_path, source))
    while process.ending() is None:
        os.sched_yield()
    assert process.ending() == ending


def test_stop_kills_what_ignores_sigterm(tmp_path: Path) -> None:
    process = Process(spec(tmp_path, IGNORES_SIGTERM, stop_seconds=0.2))
    wait_for_log(process.spec.log)
    process.stop()
    assert process.ending() == "SIGKILL"


def test_stop_kills_the_rest_of_the_group(tmp_path: Path, gone: Callable[[int], bool]) -> None:
    process = Process(spec(tmp_path, HAS_A_CHILD))
    grandchild = int(wait_for_log(process.spec.log))
    process.stop()
    assert gone(grandchild)


def test_output_is_appended_to_the_log(tmp_path: Path) -> None:
    for word in ("first", "second"):
        process = Process(spec(tmp_path, f"print('{word}')"))
        while process.ending() is None:
            os.sched_yield()
    assert tail(tmp_path / "part.log") == "first | second"


def test_a_log_that_grew_long_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "_LOG_BYTES", 10)
    log = tmp_path / "part.log"
    log.write_text("long enough\n")
    Process(spec(tmp_path, "pass")).stop()
    assert (tmp_path / "part.log.1").read_text() == "long enough\n"
    assert log.read_text() == ""


def test_it_dies_with_a_parent_that_is_killed(
    script: Callable[[str], "subprocess.Popen[str]"], gone: Callable[[int], bool]
) -> None:
    parent = script("""
        import sys, time
        from pathlib import Path
        from service.embedded.process import Process, ProcessSpec
        log = Path(sys.argv[1]) / "log"
        print(Process(ProcessSpec("part", ("sleep", "60"), log, ready=lambda: True)).pid, flush=True)
        time.sleep(60)
    """)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    assert gone(child)
