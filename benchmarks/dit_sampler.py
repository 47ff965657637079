"""A converted audio DiT at the length of real use: one step, and a whole sampler, against FP32.

    python -m benchmarks.dit_sampler --exporter dynamo --mode rope

The model is generated (`worker.examples.audio_dit`), converted, and run under half emulation. The sampler integrates
the velocity from noise (t = 1) to the latent (t = 0) by Euler steps; errors of one step are the inputs of the next.
Exits 1 when a cosine is below what is claimed.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from worker.conversion import convert
from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit
from worker.graph.index import build_index
from worker.graph.load import load
from worker.types import ConvertRequest
from worker.verify.compare import compare
from worker.verify.emulate import emulate
from worker.verify.inputs import generate, input_specs
from worker.verify.session import Session
from worker.verify.watchdog import Watchdog

STEP_COSINE, LATENT_COSINE = 0.9999, 0.998
_SECONDS, _MEMORY_BYTES = 3600.0, 64 << 30

Feed = Mapping[str, NDArray[np.generic]]
Velocity = Callable[[NDArray[np.float32], float], NDArray[np.float32]]


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "dit.onnx"), Path(folder, "converted.onnx")
        config = replace(AudioDiTConfig(), exporter=options.exporter, layers=options.layers)
        write_audio_dit(source, config)
        shapes = {
            "x": (1, config.latent_channels, options.length),
            "local_add_cond": (1, config.latent_channels + 1, options.length),
        }
        profile = {name: (shape, shape, shape) for name, shape in shapes.items()}
        convert(ConvertRequest(source, target, options.mode, options.trunk, profiles=(profile,)))
        feed = generate(input_specs(build_index(load(source))), shapes, options.seed)
        start = feed["x"].astype(np.float32)
        latents = [sample(velocity(path, feed, halves), feed, options.steps) for path, halves in _both(source, target)]
    step, latent = (_cosine(*pair) for pair in zip(*latents, strict=True))
    print(f"audio DiT ({config.exporter}, {config.layers} layers) at length {options.length}, against FP32:")
    print(f"  one step      cosine {step:.6f}  (claimed: {STEP_COSINE})")
    print(f"  {options.steps} steps       cosine {latent:.6f}  (claimed: {LATENT_COSINE})")
    print(f"  what they add cosine {_cosine(*(after - start for _, after in latents)):.6f}")
    return int(step < STEP_COSINE or latent < LATENT_COSINE)


def velocity(path: Path, feed: Feed, in_half: bool) -> Velocity:
    """The model as a function of latent and time; the conditions are those of the feed."""
    skeleton = load(path)
    if in_half:
        emulate(skeleton)
    session, watchdog = Session(skeleton, path.parent, path.stem), Watchdog(_SECONDS, _MEMORY_BYTES)

    def at(x: NDArray[np.float32], time: float) -> NDArray[np.float32]:
        values = {**feed, "x": x, "t": np.full((1,), time, np.float32)}
        result: NDArray[np.float32] = session.run(values, watchdog)["velocity"]
        return result

    return at


def sample(model: Velocity, feed: Feed, steps: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The first velocity, and the latent after all steps."""
    x = feed["x"].astype(np.float32)
    first = model(x, 1.0)
    x = x - first / np.float32(steps)
    for step in range(1, steps):
        x = x - model(x, 1.0 - step / steps) / np.float32(steps)
    return first, x


def _both(source: Path, target: Path) -> tuple[tuple[Path, bool], tuple[Path, bool]]:
    return (source, False), (target, True)


def _cosine(expected: NDArray[np.float32], actual: NDArray[np.float32]) -> float:
    return compare("", expected, actual).cosine


def _options() -> argparse.Namespace:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--exporter", choices=get_args(Exporter), default="dynamo")
    cli.add_argument("--mode", choices=("minimal", "rope", "full", "auto"), default="rope")
    cli.add_argument("--trunk", choices=("fp16", "bf16"), default="fp16")
    cli.add_argument("--layers", type=int, default=4)
    cli.add_argument("--length", type=int, default=1292)
    cli.add_argument("--steps", type=int, default=8)
    cli.add_argument("--seed", type=int, default=0)
    return cli.parse_args()


if __name__ == "__main__":
    sys.exit(main())
