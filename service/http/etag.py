"""Entity tags (RFC 9110, 8.8.3 and 13.1) and conditional answers."""

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.canonical import canonical_json, digest_of

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


def strong(value: str) -> str:
    """A tag for bytes that never change under it."""
    return f'"{value}"'


def weak(value: str) -> str:
    """A tag for what means the same, though its bytes may differ."""
    return f'W/"{value}"'


def matches_weakly(header: str, etag: str) -> bool:
    """Whether `If-None-Match: header` names `etag`, whatever the strength of either."""
    if header.strip() == "*":
        return True
    return any(opaque == _opaque(etag) for _, opaque in _TAG.findall(header))


def matches_strongly(header: str, etag: str) -> bool:
    """Whether the single tag of `If-Range: header` is `etag`, both being strong. A date never matches."""
    return header.strip() == etag and not etag.startswith("W/")


def not_modified(request: Request, etag: str) -> bool:
    header = request.headers.get("if-none-match")
    return header is not None and matches_weakly(header, etag)


def tagged_json(request: Request, body: Any, headers: dict[str, str] | None = None) -> Response:
    """`body` as JSON with a weak tag made from it, or 304 when the client has it."""
    etag = weak(digest_of(canonical_json(body))[:32])
    all_headers = {"ETag": etag, "Cache-Control": "no-cache", **(headers or {})}
    if not_modified(request, etag):
        return Response(status_code=304, headers=all_headers)
    return JSONResponse(body, headers=all_headers)


def _opaque(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')
