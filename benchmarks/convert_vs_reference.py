"""Our conversion beside the one-model script that it grew from, on the same generated audio DiT.

    python -m benchmarks.convert_vs_reference --reference build_dit_fp16.py --megabytes 150 --runs 3

Wall time and peak memory (of the whole process tree, interpreter start included) are medians of interleaved runs;
validity is judged once, on the last output of each.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Run, interleaved, measure
from benchmarks.reference_script import REFERENCE_VARIABLE, add_reference
from benchmarks.validity import Profile, Validity, assess
from worker.examples.audio_dit import AudioDiTConfig, Exporter, write_audio_dit

_WEIGHTS_A_LAYER = 26  # times dim^2: 6 modulation, 4 self-attention, 4 cross-attention, 12 feed-forward
_WIDE_FROM_MEGABYTES = 400


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    run: Run
    validity: Validity | None
    size: int


def main() -> None:
    options = _options()
    console = Console()
    if options.reference is None:
        console.print(
            f"No reference script: give --reference or set {REFERENCE_VARIABLE}. Only our converter is measured."
        )
    for megabytes in options.megabytes:
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            compare(Path(folder), megabytes, options, console)


def compare(folder: Path, megabytes: int, options: argparse.Namespace, console: Console) -> None:
    """Generate, convert with each, judge, print."""
    source, config = folder / "dit.onnx", config_of(megabytes, options.exporter)
    write_audio_dit(source, config)
    commands = {"ours": ["ours"]}
    if options.reference is not None:
        commands = {"reference": ["reference", str(options.reference)], **commands}
    targets = {name: folder / f"{name}.onnx" for name in commands}
    runs = interleaved(
        {
            name: partial(
                measure,
                [
                    sys.executable,
                    "-m",
                    "benchmarks.convert_child",
                    *converter,
                    str(source),
                    str(targets[name]),
                    options.mode,
                ],
            )
            for name, converter in commands.items()
        },
        options.runs,
    )
    profile = profile_of(config, options.length)
    rows = [_row(name, runs[name], source, target, profile) for name, target in targets.items()]
    console.print(_table(f"{_size(source) / 1e6:.0f} MB {config.exporter} DiT, {config.layers} layers", rows))
    if len(rows) == 2 and not any(row.run.error for row in rows):
        console.print(_ratios(*rows))


def config_of(megabytes: int, exporter: Exporter) -> AudioDiTConfig:
    """A DiT of about that size in FP32."""
    dim = 1024 if megabytes >= _WIDE_FROM_MEGABYTES else 512
    layers = max(1, round(megabytes * 1e6 / (4 * _WEIGHTS_A_LAYER * dim**2)))
    return AudioDiTConfig(layers=layers, dim=dim, heads=dim // 64, cond_dim=768, exporter=exporter)


def profile_of(config: AudioDiTConfig, length: int) -> Profile:
    channels = {"x": config.latent_channels, "local_add_cond": config.latent_channels + 1}
    return {name: ((1, count, 1), (1, count, length), (1, count, 2 * length)) for name, count in channels.items()}


def _row(name: str, run: Run, source: Path, target: Path, profile: Profile) -> Row:
    if run.error:
        return Row(name, run, None, 0)
    return Row(name, run, assess(source, target, profile), _size(target))


def _size(path: Path) -> int:
    """Bytes of a model with its external data."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def _table(title: str, rows: list[Row]) -> Table:
    """Converters side by side, one figure a line."""
    table = Table("", *(row.name for row in rows), title=title)
    for label, figure in _FIGURES.items():
        table.add_row(label, *(figure(row) for row in rows))
    return table


def _judged(field: str) -> Callable[[Row], str]:
    return lambda row: getattr(row.validity, field) if row.validity else "-"


_FIGURES: dict[str, Callable[[Row], str]] = {
    "conversion": lambda row: f"failed: {row.run.error}" if row.run.error else "done",
    "wall, s": lambda row: f"{row.run.seconds:.2f}",
    "peak memory, MB": lambda row: f"{row.run.peak_rss / 1e6:.0f}",
    "size, MB": lambda row: f"{row.size / 1e6:.0f}",
    "passes the ONNX checker": _judged("checker"),
    "topologically sorted": _judged("sorted"),
    "parses strongly typed": _judged("typed"),
    "fused attentions": _judged("fused_attentions"),
    "cosine under half emulation": _judged("cosine"),
}


def _ratios(reference: Row, ours: Row) -> str:
    wall, memory = reference.run.seconds / ours.run.seconds, reference.run.peak_rss / ours.run.peak_rss
    return f"reference / ours: wall {wall:.1f}x, peak memory {memory:.1f}x"


def _options() -> argparse.Namespace:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_reference(cli)
    cli.add_argument("--megabytes", type=int, nargs="+", default=[150], help="sizes of the generated FP32 models")
    cli.add_argument("--exporter", choices=["torchscript", "dynamo", "opset23"], default="torchscript")
    cli.add_argument("--mode", choices=["minimal", "rope", "full"], default="rope")
    cli.add_argument("--runs", type=int, default=3, help="rounds; figures are medians")
    cli.add_argument("--length", type=int, default=256, help="latent frames at which accuracy is judged")
    cli.add_argument("--work", type=Path, help="folder for the models; default: the system's temporary folder")
    return cli.parse_args()


if __name__ == "__main__":
    main()
