"""An environment for each peer: made once in the cache folder, kept until its requirements change."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.catalogue import Peer

_STAMP = "requirements.installed"
_INSTALL_SECONDS = 3600.0
_VERSIONS = (
    "import sys, importlib.metadata as m; print(*(f'{name} {m.version(name)}' for name in sys.argv[1:]), sep=', ')"
)


class PeerMissing(Exception):  # noqa: N818 -- becomes "not run: reason" in the table
    """Why a peer cannot be had here; the message is the installer's last line."""


def python_of(peer: Peer, cache: Path) -> Path:
    """The interpreter that has the peer, installed first if need be. Raises PeerMissing."""
    if not peer.requirements:
        return Path(sys.executable)
    folder = cache / "environments" / peer.name
    stamp, wanted = folder / _STAMP, "\n".join(peer.requirements)
    if not stamp.is_file() or stamp.read_text() != wanted:
        _install(folder, peer.requirements)
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def versions_of(peer: Peer, python: Path) -> str:
    """The installed packages that matter, each with its version."""
    return _run([str(python), "-c", _VERSIONS, *peer.packages]).strip()


def _install(folder: Path, requirements: Sequence[str]) -> None:
    """By our own pip: an environment without one is made in a moment."""
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", *requirements])


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        raise PeerMissing(lines[-1] if lines else f"exit code {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise PeerMissing(f"not installed within {error.timeout:g} s") from error
    return done.stdout
