"""`/samples` over HTTP."""

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.errors import (
    BadDigest,
    BadRequest,
    DigestMismatch,
    InsufficientStorage,
    InvalidSample,
    TooLarge,
    UnsupportedMedia,
)
from service.http.context import ServicesDep
from service.http.negotiation import media_type
from service.http.problems import documented
from service.samples.types import Sample
from service.uploads.receive import receive_body

router = APIRouter(tags=["samples"])

_RAW = ("", "application/octet-stream", "application/zip", "application/x-www-form-urlencoded")
"""The last is what curl says of any file when nobody tells it."""
_REFUSALS = documented(
    BadRequest, BadDigest, TooLarge, UnsupportedMedia, DigestMismatch, InvalidSample, InsufficientStorage
)
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_BODY = {
    "requestBody": {"required": True, "content": {"application/octet-stream": _BINARY, "application/zip": _BINARY}}
}
_SAMPLE = {"model": Sample, "description": "The sample"}


@router.post(
    "/samples", status_code=201, responses={200: _SAMPLE, 201: _SAMPLE, **_REFUSALS}, openapi_extra=_BODY,
    summary="Upload a verification sample",
)  # fmt: skip
async def post_sample(request: Request, services: ServicesDep) -> Response:
    """201, or 200 when it was here. An `.npz` archive with an array for each input, or one ONNX tensor (`.pb`).

    Its digest goes into `accuracy.samples` of a build.
    """
    media = media_type(request)
    if media not in _RAW:
        raise UnsupportedMedia(f"Send the file as application/octet-stream, not {media[:100]}.")
    blob = await receive_body(request, services.store, services.settings.max_sample_bytes)
    sample, created = await run_in_threadpool(services.samples.register, blob)
    location = {"Location": f"/blobs/{sample.digest}"}
    return JSONResponse(sample.model_dump(mode="json"), 201 if created else 200, headers=location)
