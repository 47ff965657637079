"""Mode auto on real and generated models: what it keeps, what that costs beside mode rope, how long the search takes.

    python -m benchmarks.auto [--models NAME…] [--target-cosine 0.999]

Each model is searched on generated inputs, converted by the recipe, and judged on inputs of another seed. `cost` is
that of all FP32 nodes as a share of what mode rope keeps. Time is told in runs of the whole model, and in seconds of
search and conversion; those count as so many FP32 runs, planning and loading included, which take longer than the runs
of a small model. Exits 1 when auto costs more than rope, misses the target on the held-out inputs though it met it on
its own (even with sums accumulated in half), or needs more than twelve runs.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import onnx
from rich.console import Console
from rich.table import Table

from benchmarks.peers.models import shipped_models
from tests.conformance import exports
from worker.conversion import convert
from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit
from worker.graph.index import build_index
from worker.graph.load import load
from worker.precision.report import AutoReport
from worker.types import ConvertRequest, ShapeTriple
from worker.verify.check import verify
from worker.verify.inputs import generate, input_specs
from worker.verify.session import Session
from worker.verify.types import Verdict, VerifyRequest
from worker.verify.watchdog import Watchdog

MOST_RUNS = 12
_HELD_OUT_SEED = 1000
_OCR = "ch_PP-OCRv4_rec_infer"
_EXPORTS = (
    "stable_audio.torchscript17", "stable_audio3.dynamo23", "flux.dynamo23", "sd3.torchscript17", "llama.dynamo23",
    "t5.torchscript17", "vit.torchscript14",
)  # fmt: skip

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one model. Seconds: of search and conversion, and of one run in FP32."""

    name: str
    auto: AutoReport
    held_out: Verdict
    seconds: float
    fp32_seconds: float

    @property
    def faults(self) -> list[str]:
        auto = self.auto
        checks = {
            "costs more than rope": auto.cost is not None and auto.cost > (auto.rope_cost or 0.0),
            "fails on held-out inputs": auto.outcome == "met" and self.held_out.verdict != "passed",
            "fails when sums are in half": auto.outcome == "met" and self.held_out.pessimistic == "failed",
            "did not search": auto.outcome == "fell back",
            f"needs more than {MOST_RUNS} runs": auto.runs > MOST_RUNS,
        }
        return [fault for fault, is_so in checks.items() if is_so]


def main() -> int:
    options = _options()
    table = Table("model", "outcome", "islands", "cost", "cosine", "held out", "runs", "seconds", "of FP32 runs", "")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path, shapes in models(Path(folder), options.cache, options.length):
            if not options.models or name in options.models:
                row = measure(name, path, shapes, options.target_cosine)
                failures += bool(row.faults)
                table.add_row(*cells(row))
    Console(width=160).print(table)
    return int(failures > 0)


def models(folder: Path, cache: Path, length: int) -> Iterator[tuple[str, Path, Shapes]]:
    """Ten and more: transformers as three exporters spell them, a text recogniser, exports of known libraries."""
    for exporter in get_args(Exporter):
        config = replace(AudioDiTConfig(), exporter=exporter)
        path = folder / f"audio_dit.{exporter}.onnx"
        write_audio_dit(path, config)
        latents = (1, config.latent_channels, length)
        yield path.stem, path, {"x": latents, "local_add_cond": (1, config.latent_channels + 1, length)}
    for model in shipped_models(cache):
        if model.path.stem == _OCR:
            yield _OCR, model.path, model.shapes
    for name in _EXPORTS:
        export = exports.load(name)
        path = folder / f"{name}.onnx"
        onnx.save(export.model, path)
        yield name, path, export.shapes


def measure(name: str, path: Path, shapes: Shapes, target: float) -> Row:
    """Search, convert, and judge on other inputs than the search had."""
    profile: dict[str, ShapeTriple] = {each: (shape, shape, shape) for each, shape in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        target_file = Path(folder, "converted.onnx")
        started = time.perf_counter()
        request = ConvertRequest(path, target_file, mode="auto", target_cosine=target, profiles=(profile,))
        report = convert(request)
        seconds = time.perf_counter() - started
        held_out = VerifyRequest(
            path, target_file, (profile,), target_cosine=target, seed=_HELD_OUT_SEED, pessimistic=True
        )
        verdict = verify(held_out)
    if report.auto is None:
        raise ValueError("a report of mode auto has its search")
    return Row(name, report.auto, verdict, seconds, fp32_seconds(path, shapes))


def fp32_seconds(path: Path, shapes: Shapes) -> float:
    """The shortest of three runs, loading left out."""
    feed = generate(input_specs(build_index(load(path))), shapes, 0)
    session, watchdog = Session(load(path), path.parent, "model"), Watchdog(600.0, 64 << 30)
    found = []
    for _ in range(3):
        started = time.perf_counter()
        session.run(feed, watchdog)
        found.append(time.perf_counter() - started)
    return min(found)


def cells(row: Row) -> list[str]:
    auto = row.auto
    kept = sum(candidate.kept for candidate in auto.candidates)
    share = f"{auto.cost / auto.rope_cost:.0%}" if auto.cost is not None and auto.rope_cost else "-"
    held_out = "-" if row.held_out.cosine is None else f"{row.held_out.verdict} {row.held_out.cosine:.6f}"
    return [
        row.name,
        auto.outcome,
        f"{kept} of {len(auto.candidates)}",
        share,
        "-" if auto.cosine is None else f"{auto.cosine:.6f}",
        held_out,
        str(auto.runs),
        f"{row.seconds:.1f}",
        f"{row.seconds / row.fp32_seconds:.0f}",
        "; ".join(row.faults),
    ]


def _options() -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "atoll", "converters")
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--models", nargs="*", default=(), help="names; default: all")
    cli.add_argument("--length", type=int, default=256, help="of the generated transformers' latents")
    cli.add_argument("--target-cosine", type=float, default=0.999)
    cli.add_argument("--cache", type=Path, default=cache, help=f"where wheels with models are kept; default: {cache}")
    return cli.parse_args()


if __name__ == "__main__":
    sys.exit(main())
