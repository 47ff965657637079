"""Every error as an RFC 9457 problem."""

from collections.abc import Mapping
from typing import Any

import redis.exceptions
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from service.errors import (
    AtollError,
    BadRequest,
    NotAllowed,
    NotFound,
    TooLarge,
    Unavailable,
    UnsupportedMedia,
)
from service.http.json_body import invalid_request

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

_BY_STATUS: dict[int, type[AtollError]] = {
    404: NotFound,
    405: NotAllowed,
    413: TooLarge,
    415: UnsupportedMedia,
    503: Unavailable,
}


def install(app: FastAPI) -> None:
    """Answer problems for all that can go wrong in a route; what is unexpected is for `RequestBoundary`."""
    app.add_exception_handler(AtollError, _atoll_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)
    for away in (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, redis.exceptions.OutOfMemoryError):
        app.add_exception_handler(away, _redis_away)


def problem_response(error: AtollError, instance: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to `error`; `instance` is the path that was asked for."""
    problem = error.problem(instance)
    extra = {"Retry-After": str(RETRY_SECONDS)} if problem.status == 503 else {}
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **extra, **(headers or {})},
    )


def documented(*errors: type[AtollError]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route: which problems it answers, each with an example."""
    responses: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        known = responses.setdefault(error.status, {"description": "", "content": {MEDIA_TYPE: _content()}})
        known["description"] = "; ".join(filter(None, (known["description"], error.title)))
        known["content"][MEDIA_TYPE]["examples"][error.slug] = {"value": _example(error)}
    return responses


def _content() -> dict[str, Any]:
    return {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}


def _example(error: type[AtollError]) -> dict[str, Any]:
    return error("What is wrong, where, and what to do about it.").problem("/…").model_dump(exclude_none=True)


async def _atoll_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AtollError)
    return problem_response(error, request.url.path)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(invalid_request(error.errors()), request.url.path)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return _not_allowed(request)
    kind = _BY_STATUS.get(error.status_code, BadRequest)
    nothing_here = "There is nothing at this path; /openapi.json lists what there is."
    detail = nothing_here if error.status_code == 404 else str(error.detail)
    return problem_response(kind(detail), request.url.path, error.headers)


def _not_allowed(request: Request) -> Response:
    """Starlette names the methods of the first route at a path; here each method has a route of its own."""
    methods = [method for method in _METHODS if _is_served(request, method)]
    error = NotAllowed(f"{request.method} is not possible here; use {' or '.join(methods)}.")
    return problem_response(error, request.url.path, {"Allow": ", ".join(methods)})


def _is_served(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


async def _redis_away(request: Request, error: Exception) -> Response:  # noqa: ARG001  # Starlette's signature
    away = Unavailable("Redis, which holds the live state, is away. Nothing was stored; send the request again.")
    return problem_response(away, request.url.path)
