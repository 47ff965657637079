"""`atoll up` as a user starts it, for as long as a `with` block lasts."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.embedded.process import tie_to
from service.embedded.stack import ATOLL
from service.errors import CommandError

_STOP_SECONDS = 30.0


@contextmanager
def running_server(data_dir: Path) -> Iterator[str]:
    """Start the service over `data_dir` on a free port; yields its URL; stops it and waits for its end.

    Raises CommandError with what it said if it does not start.
    """
    command = (*ATOLL, "up", "--port", "0", "--data-dir", str(data_dir), "--json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, process_group=0, preexec_fn=tie_to(os.getpid())
    ) as process:
        try:
            yield _url(process)
        finally:
            process.send_signal(signal.SIGTERM)
            _wait(process)


def _url(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise CommandError(f"`atoll up` did not start (exit code {process.wait()}); what it said stands above")
    return str(json.loads(line)["url"])


def _wait(process: "subprocess.Popen[str]") -> None:
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
