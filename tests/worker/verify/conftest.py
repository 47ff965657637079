import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from worker.graph.load import load
from worker.verify.emulate import emulate
from worker.verify.session import Session
from worker.verify.watchdog import Watchdog

HEADER = '<ir_version: 10, opset_import: ["": 20, "acme": 1]>'
Feed = Mapping[str, Any]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a model given as ONNX text without its header, with `half(0.1)` for the bits that ONNX text wants."""

    def write_text(text: str, name: str = "model.onnx") -> Path:
        path = tmp_path / name
        text = re.sub(r"half\((.+?)\)", lambda match: str(np.float16(match[1]).view(np.uint16)), text)
        onnx.save(onnx.parser.parse_model(f"{HEADER} {text}"), path)
        return path

    return write_text


@pytest.fixture
def run_emulated() -> Callable[[Path, Feed], dict[str, np.ndarray]]:
    """The outputs of a model file under half emulation."""

    def run(path: Path, feed: Feed) -> dict[str, np.ndarray]:
        skeleton = load(path)
        emulate(skeleton)
        return Session(skeleton, path.parent, "model").run(feed, Watchdog(60, 8 << 30))

    return run
