"""Names of objects, and where a local store keeps them on disk."""

from pathlib import Path, PurePosixPath

from service.canonical import is_digest

BLOBS = "blobs/"


def check_path(path: str) -> str:
    """`path` itself, if it is relative and stays inside. Raises ValueError: atoll makes paths, not its users."""
    parts = path.split("/")
    if not path or "\0" in path or "\\" in path or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} is not a path of an object")
    return path


def check_prefix(prefix: str) -> str:
    """A folder's prefix: a path with a `/` at its end."""
    if not prefix.endswith("/"):
        raise ValueError(f"{prefix!r} is not a folder: it has to end with `/`")
    check_path(prefix[:-1])
    return prefix


def check_digest(digest: str) -> str:
    if not is_digest(digest):
        raise ValueError(f"{digest!r} is not a sha256 digest")
    return digest


def on_disk(root: Path, path: str) -> Path:
    """Blobs are spread over 256 folders, so that no folder becomes too long to read; facts lie where they are named."""
    check_path(path)
    if path.startswith(BLOBS):
        digest = check_digest(path.removeprefix(BLOBS))
        return root / BLOBS / digest[:2] / digest
    return root / path


def from_disk(root: Path, file: Path) -> str:
    relative = PurePosixPath(file.relative_to(root).as_posix())
    return f"{BLOBS}{relative.name}" if relative.parts[0] == "blobs" else str(relative)
