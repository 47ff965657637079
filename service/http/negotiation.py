"""Media types: the one that a client sends, and which of two it would rather have (RFC 9110, 8.3 and 12.5.1)."""

from collections.abc import Iterator

from starlette.requests import Request


def media_type(request: Request) -> str:
    """That of the body, in lower case and without parameters; empty where the client does not say."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def prefers(accept: str | None, media_type: str, *, over: str) -> bool:
    """Whether `Accept` gives `media_type` a greater weight than `over`. Without the header nothing is preferred."""
    ranges = dict(_ranges(accept or ""))
    return _weight(ranges, media_type) > _weight(ranges, over)


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    for entry in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        if media_range:
            yield media_range, _quality(parameters)


def _quality(parameters: list[str]) -> float:
    """A weight that cannot be read counts as none."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0.0 <= weight <= 1.0 else 0.0
    return 1.0


def _weight(ranges: dict[str, float], media_type: str) -> float:
    """That of the most specific range which the type is in."""
    for media_range in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if media_range in ranges:
            return ranges[media_range]
    return 0.0
