"""Does the half-precision emulation tell what a GPU's half kernels do?

    python -m benchmarks.emulator_on_gpu [--length 1292] [--out FILE.json]

Needs torch with CUDA. For each DiT, trunk and mode: the converted graph runs node by node with torch's half kernels
on the GPU, and under emulation on the CPU; both are compared with FP32. Prints both relative errors, their ratio, and
whether the two verdicts agree (cosine >= 0.999, all values finite).
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from benchmarks.gpu.torch_graph import run
from worker.examples.audio_dit import AudioDiTConfig, write_audio_dit
from worker.graph.index import build_index
from worker.graph.load import load
from worker.precision.convert import convert
from worker.types import ConvertRequest
from worker.verify.compare import compare
from worker.verify.emulate import emulate
from worker.verify.inputs import generate, input_specs
from worker.verify.session import Session
from worker.verify.watchdog import Watchdog

CASES = [
    (exporter, trunk, mode)
    for exporter in ("torchscript", "dynamo", "opset23")
    for trunk in ("fp16", "bf16")
    for mode in ("rope", "minimal")
]


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--length", type=int, default=1292)
    cli.add_argument("--out", type=Path)
    options = cli.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name(0)}, length {options.length}")
    print(f"{'model':12} {'trunk':5} {'mode':8} {'GPU error':>10} {'emulated':>10} {'ratio':>6}  verdicts")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in _rows(Path(folder), options.length):
            rows.append(row)
            print(
                f"{row['model']:12} {row['trunk']:5} {row['mode']:8} {row['gpu']:10.3g} {row['emulated']:10.3g} "
                f"{row['ratio']:6.2f}  {'agree' if row['agree'] else 'DIFFER'}"
            )
    agreed, within = sum(row["agree"] for row in rows), sum(0.5 <= row["ratio"] <= 2 for row in rows)
    print(f"verdicts agree in {agreed} of {len(rows)}; errors within a factor of 2 in {within} of {len(rows)}")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=2) + "\n")


def _rows(folder: Path, length: int) -> Iterator[dict[str, Any]]:
    for exporter, trunk, mode in CASES:
        source, target = folder / f"{exporter}.onnx", folder / f"{exporter}.{trunk}.{mode}.onnx"
        if not source.exists():
            write_audio_dit(source, AudioDiTConfig(exporter=exporter))
        convert(ConvertRequest(source, target, mode=mode, trunk=trunk))
        feed = _feed(source, length)
        expected = _on_cpu(source, feed, emulated=False)
        figures = {
            "gpu": compare("output", expected, next(iter(run(onnx.load(target), feed).values()))),
            "emulated": compare("output", expected, _on_cpu(target, feed, emulated=True)),
        }
        errors = {name: figure.relative_l2 or 0.0 for name, figure in figures.items()}
        passed = {name: figure.cosine >= 0.999 and not figure.nonfinite for name, figure in figures.items()}
        yield {
            "model": exporter,
            "trunk": trunk,
            "mode": mode,
            **errors,
            "ratio": errors["emulated"] / errors["gpu"] if errors["gpu"] else float("inf"),
            "agree": passed["gpu"] == passed["emulated"],
        }


def _feed(source: Path, length: int) -> dict[str, np.ndarray]:
    specs = input_specs(build_index(load(source)))
    shapes = {
        spec.name: tuple(
            dim if isinstance(dim, int) else (1 if axis == 0 else length) for axis, dim in enumerate(spec.dims)
        )
        for spec in specs
    }
    return generate(specs, shapes, seed=1)


def _on_cpu(path: Path, feed: dict[str, np.ndarray], *, emulated: bool) -> np.ndarray:
    skeleton = load(path)
    if emulated:
        emulate(skeleton)
    session = Session(skeleton, path.parent, "model")
    return next(iter(session.run(feed, Watchdog(600, 64 << 30)).values()))


if __name__ == "__main__":
    main()
