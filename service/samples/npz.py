"""The arrays that an `.npz` archive holds, from its directory and their headers; no array is unpacked.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import ast
import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from service.errors import InvalidSample
from service.samples.types import SampleTensor

MAX_ARRAYS = 1024
_MAX_DIRECTORY_BYTES = 1 << 20
_MAX_HEADER_BYTES = 1 << 16
_MAX_RANK = 32
_END, _END_BYTES, _LONGEST_COMMENT = b"PK\x05\x06", 22, 0xFFFF
_UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError)
"""What zipfile raises for archives that are broken, encrypted, or packed in a way that it does not know."""
_MAGIC = b"\x93NUMPY"
_DTYPES = {
    "f2": "float16", "f4": "float", "f8": "double", "b1": "bool",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
}  # fmt: skip


def read_npz(path: Path) -> tuple[SampleTensor, ...]:
    """Raises InvalidSample, which names the array and says what is wrong with it."""
    _check_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            found = tuple(_tensor(archive, member) for member in members)
    except _UNREADABLE as error:
        raise InvalidSample(f"The archive cannot be read: {error}. Write it with numpy.savez.") from error
    names = [tensor.name for tensor in found]
    if twins := {name for name in names if names.count(name) > 1}:
        raise InvalidSample(f"The archive has the array {min(twins)!r} twice.")
    if not found:
        raise InvalidSample("The archive has no arrays; write one for each input of the model with numpy.savez.")
    return found


def _check_directory(path: Path) -> None:
    """Before it is read: an archive may claim any number of members, and each costs memory."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES - _LONGEST_COMMENT))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise InvalidSample("The archive is cut off: its directory is missing. Upload the whole file.")
    members, directory = struct.unpack_from("<HI", tail, at + 10)
    if members > MAX_ARRAYS or directory > _MAX_DIRECTORY_BYTES:
        raise InvalidSample(f"The archive has {members} members; a sample has {MAX_ARRAYS} arrays at most.")


def _tensor(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> SampleTensor:
    name = member.filename.removesuffix(".npy")
    if name == member.filename:
        raise InvalidSample(f"The archive has {member.filename!r}, which is no .npy array.")
    with archive.open(member) as file:
        header, start = _header(file, name)
    tensor, item_bytes = _described(header, name)
    needed = start + item_bytes * math.prod(tensor.shape)
    if member.file_size != needed:
        raise InvalidSample(f"Array {name!r} has {member.file_size} bytes; its header asks for {needed}.")
    return tensor


def _header(file: Any, name: str) -> tuple[Any, int]:
    """The header's dictionary, and where the values begin."""
    stream: BinaryIO = file
    magic = stream.read(8)
    if magic[:6] != _MAGIC or magic[6] not in (1, 2, 3):
        raise InvalidSample(f"Array {name!r} does not begin as a .npy file does.")
    width = 2 if magic[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > _MAX_HEADER_BYTES:
        raise InvalidSample(f"Array {name!r} has a header of {length} bytes.")
    text = stream.read(length).decode("utf-8" if magic[6] == 3 else "latin-1")
    try:
        return ast.literal_eval(text.strip()), 8 + width + length
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise InvalidSample(f"Array {name!r} has a header that cannot be read.") from None


def _described(header: Any, name: str) -> tuple[SampleTensor, int]:
    if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
        raise InvalidSample(f"Array {name!r} has a header that is not numpy's.")
    code, shape = header["descr"], header["shape"]
    if not isinstance(code, str) or code[:1] not in "<|=" or code[1:] not in _DTYPES:
        raise InvalidSample(
            f"Array {name!r} has dtype {str(code)[:60]!r}; use one of {', '.join(sorted(set(_DTYPES.values())))}."
        )
    if (
        not isinstance(shape, tuple)
        or len(shape) > _MAX_RANK
        or not all(type(dim) is int and dim >= 0 for dim in shape)
    ):
        raise InvalidSample(f"Array {name!r} has a shape that is not one.")
    return SampleTensor(name=name, dtype=_DTYPES[code[1:]], shape=shape), int(code[2:])
