"""The precision report as JSON, or as a page for who prefers HTML."""

from starlette.requests import Request
from starlette.responses import Response

from service.http.blobs import blob_response
from service.http.negotiation import prefers
from service.store.types import ObjectStore

_JSON, _HTML = "application/json", "text/html"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "sandbox",
    )
)
"""The page shows names out of uploads: it may run nothing and load nothing, whatever they hold."""


def report_response(request: Request, store: ObjectStore, report: str, page: str | None) -> Response:
    """`report` and `page` are digests; `page` is None where an older worker made none. Raises as `blob_response`."""
    if page is not None and prefers(request.headers.get("accept"), _HTML, over=_JSON):
        response = blob_response(request, store, page, media_type=f"{_HTML}; charset=utf-8")
        response.headers["Content-Security-Policy"] = _POLICY
    else:
        response = blob_response(request, store, report, media_type=_JSON)
    response.headers["Vary"] = "Accept"
    return response
