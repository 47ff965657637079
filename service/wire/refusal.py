"""Why a file is refused. The scan's child starts fast because it does not import
the tree of errors; so it says a problem's slug, and its parent finds the class."""

from typing import Any


class WireError(Exception):
    """`slug` is a problem's slug, `detail` says what, where and what to do, `extensions` are members of the problem."""

    def __init__(self, slug: str, detail: str, **extensions: Any) -> None:
        super().__init__(detail)
        self.slug = slug
        self.detail = detail
        self.extensions = extensions


def show(name: bytes) -> str:
    """A name from a file, in a message: whatever its bytes are, printable, quoted and short."""
    text = name[:200].decode("utf-8", "backslashreplace")
    return ascii(text) if len(name) <= 200 else f"{text!a}…"
