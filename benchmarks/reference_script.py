"""The one-model script that our converter grew from. It is no part of atoll: who has it tells where."""

import argparse
import os
from pathlib import Path

REFERENCE_VARIABLE = "ATOLL_BENCH_REFERENCE"


def add_reference(cli: argparse.ArgumentParser) -> None:
    """The option `--reference`: a file that exists, or None."""
    known = os.environ.get(REFERENCE_VARIABLE)
    cli.add_argument("--reference", type=_existing, default=known, metavar="FILE", help="path of build_dit_fp16.py")


def _existing(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path
