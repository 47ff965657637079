"""`/models` and `/blobs` over HTTP."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.builds.repository import REDIS_AWAY
from service.canonical import is_digest
from service.engines.service import EngineFilter
from service.errors import (
    AmbiguousProtobuf,
    BadDigest,
    BadRequest,
    BlobNotFound,
    DigestMismatch,
    ExternalDataMissing,
    InsufficientStorage,
    InvalidModel,
    InvalidName,
    InvalidRequest,
    MalformedJson,
    ModelNotFound,
    NotOnnx,
    TooLarge,
    UnsupportedMedia,
)
from service.http.context import Services, ServicesDep
from service.http.etag import strong, tagged_json
from service.http.json_body import read_json
from service.http.negotiation import media_type
from service.http.paging import DEFAULT_LIMIT, CursorField, LimitField, Listing, page_of
from service.http.problems import documented
from service.models.service import Assembly
from service.models.types import Model
from service.uploads.names import check_filename
from service.uploads.receive import receive_body, receive_form
from service.uploads.types import ReceivedForm

router = APIRouter(tags=["models"])

_RAW = ("", "application/octet-stream", "application/onnx", "application/x-onnx", "application/x-www-form-urlencoded")
"""The last is what curl says of any file when nobody tells it."""

_LISTED_ENGINES = 50
_REFUSALS = documented(
    BadRequest, MalformedJson, BadDigest, InvalidName, TooLarge, UnsupportedMedia, InvalidRequest, DigestMismatch,
    InvalidModel, NotOnnx, AmbiguousProtobuf, ExternalDataMissing, InsufficientStorage,
)  # fmt: skip
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["model"],
                    "properties": {
                        "model": {"type": "string", "format": "binary", "description": "The .onnx file."},
                        "data": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "External-data files; each filename is the location in the graph.",
                        },
                    },
                }
            },
            "application/json": {"schema": Assembly.model_json_schema()},
        },
    }
}
_MODEL = {"model": Model, "description": "The model"}


class EngineSummary(BaseModel):
    """An engine, as a model lists it."""

    digest: str
    arch: str
    mode: str
    trunk: str
    url: str


class ModelWithEngines(Model):
    """A model, and the newest engines built from it; null while Redis is away."""

    engines: tuple[EngineSummary, ...] | None


class _ModelQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: LimitField = DEFAULT_LIMIT
    cursor: CursorField = None


@router.post(
    "/models",
    status_code=201,
    responses={200: _MODEL, 201: _MODEL, **_REFUSALS},
    openapi_extra=_BODY,
    summary="Upload a model",
)
async def post_model(
    request: Request,
    services: ServicesDep,
    name: Annotated[str, Query(max_length=256, description="What a raw body is called.")] = "model.onnx",
) -> Response:
    """201, or 200 when it was here. The file as the body, a form with its external data, or JSON that names blobs."""
    media = media_type(request)
    match media:
        case "application/json":
            assembly = await read_json(request, Assembly, services.settings.max_json_bytes)
            model, created = await run_in_threadpool(services.models.assemble, assembly)
        case "multipart/form-data":
            form = await receive_form(request, services.store, services.settings)
            model, created = await run_in_threadpool(_register_form, services, form)
        case _ if media in _RAW:
            filename = check_filename(name.encode("utf-8", "surrogatepass"), "name")
            blob = await receive_body(request, services.store, services.settings.max_model_bytes)
            model, created = await run_in_threadpool(services.models.register, blob, {}, filename)
        case _:
            raise UnsupportedMedia(f"Send application/octet-stream, multipart/form-data or JSON, not {media[:100]}.")
    return JSONResponse(_body(model), 201 if created else 200, headers={"Location": f"/models/{model.id}"})


@router.get(
    "/models",
    responses={200: {"model": Listing[Model]}, **documented(InvalidRequest)},
    summary="List models, by id",
)
def list_models(request: Request, services: ServicesDep, query: Annotated[_ModelQuery, Query()]) -> Response:
    ids, following = page_of(services.models.ids(), query.limit, query.cursor)
    return tagged_json(request, {"items": [_body(services.models.get(model)) for model in ids], "next": following})


@router.head("/models/{model}", responses=documented(ModelNotFound), summary="Whether an upload can be skipped")
def head_model(model: str, services: ServicesDep) -> Response:
    return Response(headers={"ETag": strong(services.models.get(model).id)})


@router.get(
    "/models/{model}",
    responses={200: {"model": ModelWithEngines}, **documented(ModelNotFound)},
    summary="Look at a model",
)
def get_model(model: str, request: Request, services: ServicesDep) -> Response:
    """What the scan found, and the newest engines built from it (null while Redis is away)."""
    found = services.models.get(model)
    return tagged_json(request, _body(ModelWithEngines(**dict(found), engines=_engines_of(services, model))))


@router.head("/blobs/{digest}", responses=documented(BlobNotFound), summary="Whether an upload can be skipped")
def head_blob(digest: str, services: ServicesDep) -> Response:
    blob = services.store.blob(digest) if is_digest(digest) else None
    if blob is None:
        raise BlobNotFound(f"There is no blob {digest[:64]!r} here; upload it.")
    return Response(headers={"ETag": strong(digest), "Content-Length": str(blob.size)})


def _register_form(services: Services, form: ReceivedForm) -> tuple[Model, bool]:
    if form.model is None or form.params is not None:
        for blob in form.blobs:
            services.store.take_back(blob)
        where = "form.model" if form.model is None else "form.params"
        message = "send the .onnx file as the part `model`" if form.model is None else "a model has no parameters"
        raise InvalidRequest(f"{where}: {message}.", errors=[{"where": where, "message": message}])
    external = {file.filename: file.blob for file in form.data}
    return services.models.register(form.model.blob, external, form.model.filename)


def _body(model: Model) -> dict[str, Any]:
    """Without the slice of every external tensor: thousands, of interest to workers only."""
    return model.model_dump(mode="json", exclude={"scan": {"external"}})


def _engines_of(services: Services, model: str) -> tuple[EngineSummary, ...] | None:
    try:
        page = services.engines.list(EngineFilter(model=model), _LISTED_ENGINES)
    except REDIS_AWAY:
        return None
    return tuple(
        EngineSummary(
            digest=engine.digest,
            arch=engine.arch,
            mode=engine.mode,
            trunk=engine.trunk,
            url=f"/engines/{engine.digest}",
        )
        for engine in page.items
    )
