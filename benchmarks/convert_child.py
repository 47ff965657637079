"""One conversion in a process of its own: `reference SCRIPT` or `ours`, then input, output and mode."""

import importlib.util
import sys
from pathlib import Path

from worker.types import ConvertRequest


def reference(script: str, source: str, target: str, mode: str) -> None:
    """The convert step of the one-model script, as its own `main` calls it."""
    spec = importlib.util.spec_from_file_location("reference_script", script)
    if spec is None or spec.loader is None:
        sys.exit(f"{script} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.convert_to_fp16(source, target, mode=mode, bound_attn=True)


def ours(source: str, target: str, mode: str) -> None:
    from worker.precision.convert import convert

    convert(ConvertRequest(Path(source), Path(target), mode=mode))


if __name__ == "__main__":
    if sys.argv[1] == "reference":
        reference(*sys.argv[2:])
    else:
        ours(*sys.argv[2:])
