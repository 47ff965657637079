"""Lists in pages: `{"items": […], "next": cursor or null}`."""

import base64
import binascii
import heapq
from collections.abc import Iterable
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, Field

from service.errors import InvalidRequest

DEFAULT_LIMIT = 50
MAX_LIMIT = 500

LimitField = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Most items in one page.")]
CursorField = Annotated[str | None, Field(max_length=512, description="`next` of the page before.")]

T = TypeVar("T", bound=BaseModel)


class Listing(BaseModel, Generic[T]):
    """What `listing` makes, for the API's description."""

    items: list[T]
    next: str | None


def listing(items: Iterable[BaseModel], following: str | None) -> dict[str, Any]:
    """The body of one page."""
    return {"items": [item.model_dump(mode="json") for item in items], "next": following}


def encode_cursor(position: str) -> str:
    """A cursor that says where a page ended; opaque to clients."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """Raises InvalidRequest for what `encode_cursor` did not make."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise InvalidRequest(
            "This cursor was not made here; use `next` of the page before, or begin without a cursor.",
            errors=[{"where": "query.cursor", "message": "not a cursor"}],
        ) from None


def page_of(names: Iterable[str], limit: int, cursor: str | None) -> tuple[list[str], str | None]:
    """The page after `cursor` of `names`, which come in any order and are paged in theirs; and the next cursor."""
    after = decode_cursor(cursor) if cursor else ""
    found = heapq.nsmallest(limit + 1, (name for name in names if name > after))
    page = found[:limit]
    return page, encode_cursor(page[-1]) if len(found) > limit else None
