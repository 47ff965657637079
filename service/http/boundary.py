"""The outermost layer of every request: its id, and an answer even to what nobody expected."""

import re
import uuid

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import log
from service.errors import AtollError
from service.http.problems import problem_response

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = log.get(__name__)


class RequestBoundary:
    """Gives each request an id (the client's, if it is harmless), which its log lines and its response carry."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        outgoing = _Outgoing(send, request_id)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, outgoing)
            except ClientDisconnect:
                _log.info("the client went away", action="http.disconnected", path=scope["path"])
            except Exception as error:  # every request is answered; the trace goes to the log
                _log.exception("unexpected error", action="http.error", path=scope["path"])
                await _answer(error, request_id, scope, receive, outgoing)


class _Outgoing:
    """`send`, with the id on the response; remembers whether the response has begun."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            MutableHeaders(scope=message)[HEADER] = self._request_id
        await self._send(message)


async def _answer(error: Exception, request_id: str, scope: Scope, receive: Receive, outgoing: _Outgoing) -> None:
    if outgoing.begun:
        raise error  # too late for another status: the server has to cut the connection
    problem = AtollError(
        f"An unexpected error was logged under the request id {request_id}; tell it to the operator.",
        request_id=request_id,
    )
    await problem_response(problem, scope["path"])(scope, receive, outgoing)


def _request_id(headers: Headers) -> str:
    given = headers.get(HEADER, "")
    return given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex
