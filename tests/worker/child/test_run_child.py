"""What `run_child` answers, raises and leaves behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from service.errors import AtollError, ChildCrashed, ChildStopped, ChildTimeout, ProblemError, ResourceLimit
from worker.child import run_child

MODULE = "simulated_child"


def run(do: str, *, timeout: float = 60, **request: Any) -> dict[str, Any]:
    return run_child(MODULE, {"do": do, **request}, timeout=timeout)


def gone(pid: int, seconds: float = 10) -> bool:
    """True when the process ends (a zombie has ended) within the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


class Recorder:
    """Keeps the events of a child; answers True to "stop?" once the child is ready."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    def __call__(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def is_ready(self) -> bool:
        return {"ready": True} in self.events

    @property
    def pid(self) -> int:
        return int(self.events[0]["pid"])


def test_a_request_larger_than_a_pipe_is_answered() -> None:
    value = "é\n\0\ud800" * 100_000
    assert run("echo", value=value)["echo"] == value


def test_events_arrive_in_order_and_whole() -> None:
    seen = Recorder()
    answer = run_child(MODULE, {"do": "count", "to": 50, "padding": 100_000}, on_event=seen, timeout=60)
    assert answer == {"counted": 50}
    assert [event["number"] for event in seen.events[1:]] == list(range(50))


def test_what_a_child_prints_is_no_answer() -> None:
    assert run("chatter") == {}


def test_the_child_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOLL_REDIS_URL", "redis://:secret@example.com")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    seen = run("echo", value=None)["environment"]
    assert {"PATH", "OPENBLAS_NUM_THREADS"} <= set(seen)
    assert not {"ATOLL_REDIS_URL", "AWS_SECRET_ACCESS_KEY"} & set(seen)


@pytest.mark.parametrize(
    ("request_", "slug", "detail"),
    [
        ({"do": "refuse"}, "parser-refused", "node 7 is refused"),
        ({"do": "fail", "error": "key"}, "internal", "KeyError: 'left over'"),
        ({"do": "fail", "error": "memory"}, "resource-limit", "8 EiB"),
        ({"do": "fail", "error": "disk"}, "insufficient-storage", "No space left"),
    ],
)
def test_an_error_in_the_child_is_raised_as_its_problem(request_: dict[str, Any], slug: str, detail: str) -> None:
    with pytest.raises(ProblemError) as caught:
        run(**request_)
    problem = caught.value.problem()
    assert problem.slug == slug
    assert detail in problem.detail


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_killed_child_is_reported_with_its_signal_and_last_lines(name: str) -> None:
    with pytest.raises(ChildCrashed) as caught:
        run("die", signal=name)
    assert caught.value.extensions["signal"] == name
    assert caught.value.extensions["printed"][0] == "about to die"
    assert ("ran out of memory" in caught.value.detail) == (name == "SIGKILL")


def test_a_segmentation_fault_names_where_it_happened() -> None:
    with pytest.raises(ChildCrashed) as caught:
        run("segfault")
    assert any("in segfault" in line for line in caught.value.extensions["printed"])


def test_a_child_that_leaves_without_an_answer_has_crashed() -> None:
    with pytest.raises(ChildCrashed, match="exit code 3 and gave no answer"):
        run("leave")


def test_a_module_that_does_not_exist_is_a_crash_that_names_it() -> None:
    with pytest.raises(ChildCrashed) as caught:
        run_child("worker.no_such_module", {}, timeout=60)
    assert "No module named worker.no_such_module" in caught.value.extensions["printed"][-1]


def test_a_child_started_by_hand_says_that_it_is_none_of_that() -> None:
    by_hand = subprocess.run([sys.executable, "-m", MODULE], capture_output=True, text=True, check=False)
    assert by_hand.returncode == 1
    assert by_hand.stderr == "simulated_child is a child process of atoll's worker; it is not started by hand.\n"


@pytest.mark.parametrize("deaf", [False, True])
def test_a_stopped_child_is_gone(deaf: bool) -> None:
    seen = Recorder()
    with pytest.raises(ChildStopped):
        run_child(MODULE, {"do": "sleep", "deaf": deaf}, on_event=seen, timeout=60, should_stop=seen.is_ready)
    assert not psutil.pid_exists(seen.pid)


def test_a_child_that_takes_too_long_is_gone() -> None:
    seen = Recorder()
    with pytest.raises(ChildTimeout, match="within 2 s"):
        run_child(MODULE, {"do": "sleep"}, on_event=seen, timeout=2)
    assert not psutil.pid_exists(seen.pid)


def test_a_child_that_grows_past_its_memory_is_gone() -> None:
    seen = Recorder()
    with pytest.raises(ResourceLimit) as caught:
        run_child(MODULE, {"do": "grow", "mib": 400}, on_event=seen, timeout=60, memory_bytes=200 << 20)
    assert caught.value.extensions["used_bytes"] > 200 << 20
    assert not psutil.pid_exists(seen.pid)


def test_a_grandchild_does_not_stay() -> None:
    assert gone(run("spawn")["grandchild"])


def test_a_consumer_that_fails_ends_the_child() -> None:
    seen = Recorder()

    def failing(event: Mapping[str, Any]) -> None:
        seen(event)
        raise LookupError("consumer")

    with pytest.raises(LookupError):
        run_child(MODULE, {"do": "sleep"}, on_event=failing, timeout=60)
    assert not psutil.pid_exists(seen.pid)


PARENT = """
from worker.child import run_child
tell = lambda event: print(event.get("pid", "ready"), flush=True)
run_child("simulated_child", {"do": "sleep"}, on_event=tell, timeout=60)
"""


def test_no_orphan_survives_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "ready\n"
        parent.send_signal(signal.SIGKILL)
    assert gone(child)


def test_descriptors_do_not_leak() -> None:
    def attempt(action: Callable[[], object]) -> None:
        with pytest.raises(AtollError):
            action()

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run("echo", value=1)
    before = descriptors()
    run("echo", value=1)
    attempt(lambda: run("refuse"))
    attempt(lambda: run("die", signal="SIGKILL"))
    attempt(lambda: run("sleep", timeout=0.1))
    assert descriptors() == before
