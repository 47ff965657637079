import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Script = Callable[[str], "subprocess.Popen[str]"]

# Two parts that write when they start and when they are asked to stop, into one file.
TWO_PARTS = """
    import sys, time
    from pathlib import Path
    from service.embedded.process import ProcessSpec
    from service.embedded.supervisor import Supervisor

    folder = Path(sys.argv[1])
    events = folder / "events"
    part = '''
    import os, signal, sys, time
    def note(what):
        with open(sys.argv[2], "a") as events:
            events.write(f"{sys.argv[1]} {what} {os.getpid()}" + chr(10))
    def stop(number, frame):
        note("stopped")
        sys.exit()
    signal.signal(signal.SIGTERM, stop)
    note("started")
    time.sleep(60)
    '''
    import textwrap

    def spec(name):
        argv = (sys.executable, "-c", textwrap.dedent(part), name, str(events))
        ready = lambda: events.exists() and name in events.read_text()
        return ProcessSpec(name, argv, folder / f"{name}.log", ready)

    say = lambda line: print(line, flush=True)
    Supervisor([spec("first"), spec("second")], say).run(lambda: say("ready"))
    print(events.read_text(), end="", flush=True)
"""


def without_pids(text: str) -> list[str]:
    return [line.rpartition(" ")[0] for line in text.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_parts_start_in_order_and_stop_in_reverse(script: Script, number: signal.Signals) -> None:
    process = script(TWO_PARTS)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    output, _ = process.communicate()
    assert without_pids(output) == ["first started", "second started", "second stopped", "first stopped"]
    assert process.returncode == 0


def test_a_part_that_dies_is_started_again(script: Script, tmp_path: Path) -> None:
    process = script(TWO_PARTS)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    first = (tmp_path / "events").read_text().splitlines()[0]
    os.kill(int(first.split()[-1]), signal.SIGKILL)
    assert process.stdout.readline().startswith("first ended (SIGKILL); starting it again in 0.5 s (log: ")
    assert process.stdout.readline().startswith("first started again (pid ")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0


def test_a_part_that_does_not_start_ends_all_with_its_last_words(script: Script, gone: Callable[[int], bool]) -> None:
    process = script("""
        import sys
        from pathlib import Path
        from service.embedded.process import ProcessSpec
        from service.embedded.supervisor import Supervisor
        from service.errors import CommandError

        folder = Path(sys.argv[1])
        good = ProcessSpec("good", ("sh", "-c", "echo $$; exec sleep 60"), folder / "good.log",
                           ready=lambda: bool((folder / "good.log").read_text()))
        bad = ProcessSpec("bad", ("sh", "-c", "echo no disk; exit 4"), folder / "bad.log", ready=lambda: False)
        try:
            Supervisor([good, bad], print).run(lambda: None)
        except CommandError as error:
            print((folder / "good.log").read_text().strip())
            print(error.detail)
    """)
    output, _ = process.communicate()
    pid, detail = output.splitlines()
    assert gone(int(pid))
    assert detail.startswith("bad did not start (exit code 4)")
    assert detail.endswith("ends: no disk")
