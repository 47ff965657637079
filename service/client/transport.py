"""Requests to one server: safe ones are tried again, problems become errors of our tree."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from pydantic import ValidationError

from service.errors import AtollError, Problem, ProblemError, Unavailable

_TIMEOUT = httpx.Timeout(60.0, connect=5.0, read=90.0)
_TRIES = 5
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_COME_BACK_LATER = frozenset({502, 503, 504})


class Transport:
    """An HTTP connection to one server. Only GET and HEAD are repeated, after growing, jittered pauses."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._http = httpx.Client(base_url=base_url, timeout=_TIMEOUT)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **options: Any) -> httpx.Response:
        """A response below 400. Raises ProblemError, or Unavailable when no try was answered."""
        return checked(self._repeated(lambda: self._http.get(path, **options)))

    def head(self, path: str) -> bool:
        """True for a success, False for 404. Raises as `get` does."""
        response = self._repeated(lambda: self._http.head(path))
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        checked(response)
        return True

    def post(self, path: str, **options: Any) -> httpx.Response:
        """A response below 400 to a request that is sent once. Raises as `get` does."""
        try:
            return checked(self._http.post(path, **options))
        except httpx.TransportError as error:
            raise self.unreachable(error) from error

    @contextmanager
    def stream(self, path: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """A response whose body the caller reads piece by piece. Raises ProblemError, and httpx.TransportError."""
        with self._http.stream("GET", path, headers=headers) as response:
            if response.is_error:
                response.read()
            yield checked(response)

    def unreachable(self, error: httpx.TransportError) -> Unavailable:
        reason = str(error) or type(error).__name__
        return Unavailable(
            f"no answer from {self._base_url} ({reason}): is the server up (`atoll up`)? Name another: --server URL"
        )

    def _repeated(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        for attempt in range(1, _TRIES):
            try:
                response = send()
            except httpx.TransportError:
                time.sleep(pause(attempt))
                continue
            if response.status_code not in _COME_BACK_LATER:
                return response
            time.sleep(max(pause(attempt), _retry_after(response)))
        try:
            return send()
        except httpx.TransportError as error:
            raise self.unreachable(error) from error


def checked(response: httpx.Response) -> httpx.Response:
    """The response itself below 400. Raises ProblemError with what the server wrote."""
    if not response.is_error:
        return response
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        raise AtollError(
            f"{response.request.method} {response.request.url} answered {response.status_code} without a problem "
            "document: is this an atoll server?"
        ) from None
    raise ProblemError(problem)


def pause(attempt: int) -> float:
    """Seconds to wait after failed try number `attempt`: exponential with full jitter."""
    return random.uniform(0, min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE))


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_PAUSE) if text.isdigit() else 0.0
