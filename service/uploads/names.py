"""File names that clients send. They are shown and compared; no path on the server is made from one."""

import unicodedata

from service.errors import InvalidName

MAX_NAME_BYTES = 1024


def check_filename(raw: bytes, part: str) -> str:
    """The name of a part's file: UTF-8, printable, relative and inside its folder. Raises InvalidName."""
    where = f"The file name of part `{part}`"
    if not raw:
        raise InvalidName(f"{where} is missing; send `filename=` as the name the graph uses for the file.")
    if len(raw) > MAX_NAME_BYTES:
        raise InvalidName(f"{where} has {len(raw)} bytes; at most {MAX_NAME_BYTES} are accepted.")
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise InvalidName(f"{where} is not UTF-8; send it in UTF-8.") from None
    if bad := next((char for char in name if _unprintable(char)), None):
        raise InvalidName(f"{where} contains the character U+{ord(bad):04X}, which cannot be shown; rename the file.")
    if _leaves_folder(name):
        raise InvalidName(f"{where}, {name!r}, is not a plain relative path; send one with `/` and without `..`.")
    return name


def base_name(filename: str) -> str:
    """What a model is called when its file is `filename`."""
    return filename.rpartition("/")[2].removesuffix(".onnx")


def _unprintable(char: str) -> bool:
    """Control and format characters (bidirectional overrides among them), surrogates and unassigned ones."""
    return unicodedata.category(char).startswith("C")


def _leaves_folder(name: str) -> bool:
    return "\\" in name or name[1:2] == ":" or any(part in ("", ".", "..") for part in name.split("/"))
