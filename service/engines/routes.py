"""`/engines` over HTTP."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.builds.types import Arch, Digest, Mode, Trunk
from service.engines.service import EngineFilter
from service.engines.types import EngineManifest
from service.errors import CorruptArtifact, EngineNotFound, InvalidRequest, NotFound, RangeNotSatisfiable, Unavailable
from service.http.blobs import blob_response
from service.http.context import ServicesDep
from service.http.etag import tagged_json
from service.http.paging import DEFAULT_LIMIT, CursorField, LimitField, Listing, decode_cursor, encode_cursor, listing
from service.http.problems import documented
from service.http.report import report_response

router = APIRouter(tags=["engines"])

_BYTES = "application/octet-stream"
_DOWNLOAD: dict[int | str, dict[str, Any]] = {
    200: {"content": {_BYTES: {}}, "description": "The bytes"},
    206: {"content": {_BYTES: {}}, "description": "The range that was asked for"},
    304: {"description": "The client has it"},
    **documented(EngineNotFound, RangeNotSatisfiable, CorruptArtifact),
}


class _Narrowing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    trunk: Trunk | None = None
    toolchain: str | None = None
    toolchain_version: str | None = None
    platform: str | None = None


class _EngineQuery(_Narrowing):
    model: Digest | None = None
    arch: Arch | None = None
    mode: Mode | None = None
    limit: LimitField = DEFAULT_LIMIT
    cursor: CursorField = None

    def filter(self) -> EngineFilter:
        return EngineFilter(**self.model_dump(exclude={"limit", "cursor"}))


@router.get(
    "/engines",
    responses={200: {"model": Listing[EngineManifest]}, **documented(InvalidRequest, Unavailable)},
    summary="List engines, newest first",
)
def list_engines(request: Request, services: ServicesDep, query: Annotated[_EngineQuery, Query()]) -> Response:
    cursor = decode_cursor(query.cursor) if query.cursor else None
    page = services.engines.list(query.filter(), query.limit, cursor)
    return tagged_json(request, listing(page.items, encode_cursor(page.next) if page.next else None))


@router.get(
    "/models/{model}/engines/{arch}/{mode}",
    status_code=302,
    responses=documented(EngineNotFound, InvalidRequest, Unavailable),
    summary="The newest engine of a model",
)
def newest_engine(
    model: str, arch: Arch, mode: Mode, services: ServicesDep, narrowing: Annotated[_Narrowing, Query()]
) -> Response:
    """Redirects to it; a 404 lists the engines that the model has in `available`."""
    manifest = services.engines.newest(EngineFilter(model, arch, mode, **narrowing.model_dump()))
    return RedirectResponse(f"/engines/{manifest.digest}", status_code=302, headers={"Cache-Control": "no-cache"})


@router.head(
    "/engines/{digest}", response_class=Response, responses=_DOWNLOAD, summary="Whether an engine is here, and its size"
)
@router.get("/engines/{digest}", response_class=Response, responses=_DOWNLOAD, summary="Download an engine")
def get_engine(digest: str, request: Request, services: ServicesDep) -> Response:
    """The tag and Repr-Digest are the engine's digest, so a download can be resumed and verified."""
    manifest = services.engines.get(digest)
    return blob_response(request, services.store, digest, media_type=_BYTES, filename=f"{_file_stem(manifest)}.engine")


@router.get(
    "/engines/{digest}/manifest",
    responses={200: {"model": EngineManifest}, 304: {"description": "The client has it"}, **documented(EngineNotFound)},
    summary="What an engine is, and its proof",
)
def get_manifest(digest: str, request: Request, services: ServicesDep) -> Response:
    return tagged_json(request, services.engines.get(digest).model_dump(mode="json"))


@router.get(
    "/engines/{digest}/onnx",
    response_class=Response,
    responses=_DOWNLOAD,
    summary="The graph that the engine was built from",
)
def get_onnx(digest: str, request: Request, services: ServicesDep) -> Response:
    manifest = services.engines.get(digest)
    filename = f"{_file_stem(manifest)}.onnx"
    return blob_response(request, services.store, manifest.onnx, media_type=_BYTES, filename=filename)


@router.get(
    "/engines/{digest}/onnx-data",
    response_class=Response,
    responses=_DOWNLOAD,
    summary="The external data of that graph",
)
def get_onnx_data(digest: str, request: Request, services: ServicesDep) -> Response:
    """Save it under the name that Content-Disposition tells, beside the graph."""
    manifest = services.engines.get(digest)
    if manifest.onnx_data is None:
        raise NotFound(f"The graph of engine {digest} has no external data; it is whole in /engines/{digest}/onnx.")
    name = manifest.onnx_data_name
    return blob_response(request, services.store, manifest.onnx_data, media_type=_BYTES, filename=name)


@router.get("/engines/{digest}/report", response_class=Response, responses=_DOWNLOAD, summary="The precision report")
def get_report(digest: str, request: Request, services: ServicesDep) -> Response:
    manifest = services.engines.get(digest)
    return report_response(request, services.store, manifest.report, manifest.report_html)


@router.get("/engines/{digest}/log", response_class=Response, responses=_DOWNLOAD, summary="The build's log, as text")
def get_log(digest: str, request: Request, services: ServicesDep) -> Response:
    manifest = services.engines.get(digest)
    return blob_response(request, services.store, manifest.log, media_type="text/plain; charset=utf-8")


def _file_stem(manifest: EngineManifest) -> str:
    return f"{manifest.model_name}-{manifest.arch}-{manifest.mode}-{manifest.trunk}"
