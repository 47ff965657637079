"""`Range` (RFC 9110, 14.2), of which one range of bytes is served."""

import re
from dataclasses import dataclass

_UNIT = re.compile(r"\s*bytes\s*=", re.IGNORECASE)
_RANGE = re.compile(r"\s*(\d{0,100})-(\d{0,100})\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from `start` up to, not including, `stop`."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


class UnsatisfiableRangeError(ValueError):
    """The range is malformed, or has no byte of the content."""


def parse_range(header: str, size: int) -> Span | None:
    """The span that `Range: header` asks for, of `size` bytes; None for the whole: other units, or several ranges."""
    unit = _UNIT.match(header)
    if unit is None:
        if re.match(r"[\w-]+=", header):
            return None
        raise UnsatisfiableRangeError(header)
    if "," in header:
        return None
    match = _RANGE.fullmatch(header, unit.end())
    if match is None or not any(match.groups()):
        raise UnsatisfiableRangeError(header)
    span = _span(match[1], match[2], size)
    if span.size <= 0:
        raise UnsatisfiableRangeError(header)
    return span


def _span(first: str, last: str, size: int) -> Span:
    if not first:
        return Span(max(0, size - int(last)), size)
    return Span(int(first), min(int(last) + 1, size) if last else size)
