"""`/builds` and `/groups` over HTTP."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.builds.body import read_build_request
from service.builds.openapi import request_body
from service.builds.repository import BuildFilter, Versioned
from service.builds.service import BuildService, GroupState
from service.builds.submission import Submission
from service.builds.types import Arch, BuildRecord, Digest, Mode, Name, Status, Trunk
from service.errors import (
    BlobNotFound,
    BuildNotFound,
    Conflict,
    GroupNotFound,
    IdempotencyKeyReused,
    InvalidModel,
    InvalidOptions,
    InvalidRequest,
    MalformedJson,
    MissingProfile,
    ModelNotFound,
    NotFound,
    NoWorker,
    RangeNotSatisfiable,
    TooLarge,
    Unavailable,
    UnsupportedMedia,
)
from service.http.blobs import blob_response
from service.http.context import Services, ServicesDep
from service.http.etag import tagged_json
from service.http.paging import DEFAULT_LIMIT, MAX_LIMIT, CursorField, LimitField, decode_cursor, encode_cursor, listing
from service.http.problems import documented
from service.http.report import report_response

router = APIRouter(tags=["builds"])

MAX_WAIT_SECONDS = 60
_POLL_SECONDS = 0.25
_RETRY_SECONDS = 2

_REFUSALS = documented(
    MalformedJson, ModelNotFound, Conflict, TooLarge, UnsupportedMedia, InvalidRequest, InvalidOptions, MissingProfile,
    NoWorker, IdempotencyKeyReused, InvalidModel, Unavailable,
)  # fmt: skip
_RESULT = documented(NotFound, BuildNotFound, BlobNotFound, RangeNotSatisfiable)
_RECORD: dict[str, Any] = {"model": BuildRecord, "description": "The build"}


class _BuildQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: tuple[Status, ...] = ()
    model: Digest | None = None
    arch: Arch | None = None
    mode: Mode | None = None
    trunk: Trunk | None = None
    key: Digest | None = None
    submitter: Name | None = None
    group: Name | None = None
    since: AwareDatetime | None = None
    id: tuple[Name, ...] = Field(default=(), max_length=MAX_LIMIT)
    limit: LimitField = DEFAULT_LIMIT
    cursor: CursorField = None

    def filter(self) -> BuildFilter:
        return BuildFilter(**self.model_dump(exclude={"id", "limit", "cursor"}))


@router.post(
    "/builds", status_code=202, responses={200: _RECORD, 202: _RECORD, **_REFUSALS}, openapi_extra=request_body(),
    summary="Ask for an engine",
)  # fmt: skip
async def post_build(
    request: Request,
    services: ServicesDep,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Response:
    """200 when it is built already; else 202, with the build that is new or in flight. Several archs make a group."""
    wanted = await read_build_request(request, services)
    submission = await run_in_threadpool(
        services.builds.submit,
        wanted.spec,
        archs=wanted.archs,
        idempotency_key=idempotency_key,
        fingerprint=wanted.fingerprint,
    )
    return _submitted(submission)


@router.get("/builds/{build}", responses={200: _RECORD, **documented(BuildNotFound)}, summary="Look at a build")
async def get_build(
    build: str,
    request: Request,
    services: ServicesDep,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for a change.")] = 0,
) -> Response:
    """With `wait` the answer comes when the build changes (against `If-None-Match` where that is sent), or in time."""
    seen = await run_in_threadpool(services.builds.get, build)
    answer = tagged_json(request, _body(seen.record))
    unchanged = answer.status_code == 304 or "if-none-match" not in request.headers
    if wait and unchanged and not seen.record.status.terminal:
        seen = await _next_change(request, services.builds, seen, wait)
        answer = tagged_json(request, _body(seen.record))
    return answer


@router.get("/builds", responses=documented(InvalidRequest, Unavailable), summary="List builds, newest first")
def list_builds(request: Request, services: ServicesDep, query: Annotated[_BuildQuery, Query()]) -> Response:
    """Several `status` mean any of them, all other filters narrow; `id` asks for just these."""
    if query.id:
        return tagged_json(request, listing(services.builds.get_many(query.id), None))
    cursor = decode_cursor(query.cursor) if query.cursor else None
    page = services.builds.list(query.filter(), query.limit, cursor)
    return tagged_json(request, listing(page.items, encode_cursor(page.next) if page.next else None))


@router.get("/groups/{group}", responses=documented(GroupNotFound), summary="One status over a group of builds")
def get_group(group: str, request: Request, services: ServicesDep) -> Response:
    return tagged_json(request, _group_body(services.builds.group(group)))


@router.get("/builds/{build}/report", responses=_RESULT, summary="The precision report")
def get_report(build: str, request: Request, services: ServicesDep) -> Response:
    """JSON; with an `Accept` that prefers text/html, a page."""
    result = _result_blobs(services, build, "report")
    return report_response(request, services.store, result["report"], result.get("report-html"))


@router.get("/builds/{build}/log", responses=_RESULT, summary="The build's log, as text")
def get_log(build: str, request: Request, services: ServicesDep) -> Response:
    return _result(request, services, build, "log", "text/plain; charset=utf-8")


@router.get("/builds/{build}/onnx", responses=_RESULT, summary="The converted graph")
def get_onnx(build: str, request: Request, services: ServicesDep) -> Response:
    return _result(request, services, build, "onnx", "application/octet-stream")


@router.get("/builds/{build}/onnx-data", responses=_RESULT, summary="The converted graph's external data")
def get_onnx_data(build: str, request: Request, services: ServicesDep) -> Response:
    return _result(request, services, build, "onnx-data", "application/octet-stream")


@router.post(
    "/builds/{build}/cancel", status_code=202, responses={202: _RECORD, **documented(BuildNotFound, Conflict)},
    summary="Cancel a build",
)  # fmt: skip
def cancel_build(build: str, services: ServicesDep, force: bool = False) -> Response:
    """Again has no further effect. 409 when others submitted the same build too, unless `force`."""
    return JSONResponse(_body(services.builds.cancel(build, force=force)), status_code=202)


def _submitted(submission: Submission) -> Response:
    if submission.group is not None:
        body = _group_body(GroupState(submission.group, submission.records))
        where = f"/groups/{submission.group.id}"
    else:
        body = _body(submission.records[0])
        where = f"/builds/{submission.records[0].id}"
    if submission.answered:
        return JSONResponse(body, headers={"Location": where})
    return JSONResponse(body, status_code=202, headers={"Location": where, "Retry-After": str(_RETRY_SECONDS)})


async def _next_change(request: Request, builds: BuildService, seen: Versioned, seconds: float) -> Versioned:
    """The build as it is after its next change, or after `seconds`. No thread is held while nothing happens."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not await request.is_disconnected():
        await asyncio.sleep(_POLL_SECONDS)
        if await run_in_threadpool(builds.rev, seen.record.id) != seen.rev:
            break
    return await run_in_threadpool(builds.get, seen.record.id)


def _body(record: BuildRecord) -> dict[str, Any]:
    return record.model_dump(mode="json")


def _group_body(state: GroupState) -> dict[str, Any]:
    return {
        "id": state.group.id,
        "status": state.status.value,
        "created_at": state.group.model_dump(mode="json")["created_at"],
        "builds": [_body(record) for record in state.builds],
        "links": {"self": f"/groups/{state.group.id}"},
    }


def _result(request: Request, services: Services, build: str, role: str, media_type: str) -> Response:
    """A blob that a build left. Raises as `_result_blobs` does."""
    digest = _result_blobs(services, build, role)[role]
    return blob_response(request, services.store, digest, media_type=media_type)


def _result_blobs(services: Services, build: str, role: str) -> Mapping[str, str]:
    """Digests by role, with `role` among them. Raises NotFound, which says how far the build is or why it has none."""
    finished = services.builds.result(build)
    if finished is None:
        record = services.builds.get(build).record
        stage = record.stage.value if record.stage else "waiting"
        raise NotFound(f"Build {build} has no {role} yet: it is {record.status.value}, stage {stage}. Ask again later.")
    if role not in finished.result:
        raise NotFound(f"Build {build} ended as {finished.status.value} and left no {role}.")
    return finished.result
