"""Figures as people read them."""

_STEP = 1000


def size(count: int) -> str:
    """Bytes in the decimal unit that fits: `512 B`, `29.0 MB`."""
    if count < _STEP:
        return f"{count} B"
    value, units = count / _STEP, iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    while value >= _STEP and unit != "TB":
        value, unit = value / _STEP, next(units)
    return f"{value:.1f} {unit}"


def number(count: int, what: str, plural: str | None = None) -> str:
    """`1 node`, `2 nodes`; `plural` where an s does not make it."""
    return f"{count} {what if count == 1 else plural or what + 's'}"
