"""Steps for the scripted server."""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from service.errors import AtollError

Respond = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: bytes = b"", announced: int | None = None, **headers: str) -> Respond:
    """`announced`: the Content-Length to claim; more than there is cuts the connection short."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(body) if announced is None else announced))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)

    return respond


def answer_json(value: object, **headers: str) -> Respond:
    return answer(200, json.dumps(value).encode(), **headers)


def answer_problem(error: AtollError, **headers: str) -> Respond:
    problem = error.problem()
    body = problem.model_dump_json().encode()
    return answer(problem.status, body, Content_Type="application/problem+json", **headers)


def hang_up(request: BaseHTTPRequestHandler) -> None:
    """Close the connection without an answer."""
    request.close_connection = True
