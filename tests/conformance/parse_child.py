"""`python -m tests.conformance.parse_child`: parses each file named on stdin; a line of JSON for each."""

import json
import sys
from pathlib import Path

from service.errors import ParserRefused, UnsupportedOp
from worker.engine.builder import network_from_onnx
from worker.engine.toolchains import toolchain_named


def refusal(path: str) -> str | None:
    try:
        network_from_onnx(Path(path), toolchain_named("tensorrt-rtx"), lambda _event: None)
    except (ParserRefused, UnsupportedOp) as refused:
        return refused.detail
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps({"refusal": refusal(line.strip())}), flush=True)
