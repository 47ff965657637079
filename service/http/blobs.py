"""Blobs as downloads: resumable, cacheable for ever, verifiable by the client."""

import re
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from service.errors import BlobNotFound, RangeNotSatisfiable
from service.http import etag
from service.http.digests import digest_header
from service.http.problems import problem_response
from service.http.ranges import Span, UnsatisfiableRangeError, parse_range
from service.store.types import Blob, ObjectStore

_CHUNK = 1 << 20
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def blob_response(
    request: Request, store: ObjectStore, digest: str, *, media_type: str, filename: str | None = None
) -> Response:
    """The blob's bytes, or those that `Range` asks for; 304, 416, or the head alone for HEAD.

    Raises BlobNotFound and CorruptArtifact. Blocks while a blob is verified at its first open.
    """
    blob = store.blob(digest)
    if blob is None:
        raise BlobNotFound(f"The bytes {digest} are no longer stored.")
    headers = _headers(blob, media_type, filename)
    if etag.not_modified(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    try:
        span = _requested(request, blob, headers["ETag"])
    except UnsatisfiableRangeError:
        return _unsatisfiable(request, blob)
    return _content(request, store, blob, span, headers)


def attachment(filename: str) -> str:
    """A Content-Disposition that any client understands (RFC 6266): an ASCII name, and the true one in UTF-8."""
    plain = _UNSAFE.sub("_", filename).strip("._") or "download"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


def _headers(blob: Blob, media_type: str, filename: str | None) -> dict[str, str]:
    return {
        "ETag": etag.strong(blob.digest),
        "Cache-Control": "public, max-age=31536000, immutable",
        "Accept-Ranges": "bytes",
        "Repr-Digest": digest_header(blob.digest),
        "Content-Type": media_type,
        "X-Content-Type-Options": "nosniff",
        **({"Content-Disposition": attachment(filename)} if filename else {}),
    }


def _requested(request: Request, blob: Blob, tag: str) -> Span | None:
    header = request.headers.get("range")
    if header is None or request.method != "GET":
        return None
    condition = request.headers.get("if-range")
    if condition is not None and not etag.matches_strongly(condition, tag):
        return None
    return parse_range(header, blob.size)


def _content(request: Request, store: ObjectStore, blob: Blob, span: Span | None, headers: dict[str, str]) -> Response:
    if span is None:
        status, span = 200, Span(0, blob.size)
        headers["Content-Digest"] = digest_header(blob.digest)
    else:
        status = 206
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{blob.size}"
    headers["Content-Length"] = str(span.size)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    return StreamingResponse(_chunks(store.open_blob(blob.digest), span), status_code=status, headers=headers)


async def _chunks(file: BinaryIO, span: Span) -> AsyncIterator[bytes]:
    """A megabyte a thread hop: with 64 kB most of the time goes to the hops."""
    with file:
        file.seek(span.start)
        left = span.size
        while left and (chunk := await run_in_threadpool(file.read, min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk


def _unsatisfiable(request: Request, blob: Blob) -> Response:
    error = RangeNotSatisfiable(
        f"The content has {blob.size} bytes; ask for one range of them as `bytes=FIRST-LAST`.", size=blob.size
    )
    return problem_response(error, request.url.path, {"Content-Range": f"bytes */{blob.size}"})
