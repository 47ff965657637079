"""The progress bar is for terminals: bytes and rate while a file is written, and nothing in a log."""

import os
import pty
import subprocess
import sys

SCRIPT = """
from worker.commands.bar import byte_bar
with byte_bar("model.onnx") as on_bytes:
    for done in range(1, 4):
        on_bytes(done * 1_000_000, 4_000_000)
"""


def drawn(on_terminal: bool) -> str:
    """What the bar writes to stderr, be it a terminal or a pipe."""
    if not on_terminal:
        return subprocess.run([sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, text=True, check=True).stderr
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    subprocess.run([sys.executable, "-c", SCRIPT], stderr=theirs, env=environment, check=True)
    text = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    return text


def test_a_terminal_shows_name_bytes_and_rate() -> None:
    text = drawn(on_terminal=True)
    assert "model.onnx" in text
    assert "3.0/4.0 MB" in text
    assert "/s" in text


def test_a_log_stays_clean() -> None:
    assert drawn(on_terminal=False) == ""
