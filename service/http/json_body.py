"""JSON that comes from outside: one meaning or none."""

import json
import math
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from service.errors import InvalidRequest, MalformedJson, TooLarge, UnsupportedMedia
from service.http.negotiation import media_type

MAX_DEPTH = 64
MAX_INTEGER_DIGITS = 20

T = TypeVar("T", bound=BaseModel)


def parse_json(data: bytes) -> Any:
    """Refuses what parsers read differently: duplicate keys, NaN, lone surrogates, huge numbers, deep nesting.

    Raises MalformedJson, which says where.
    """
    try:
        text = data.decode()
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise MalformedJson(f"The body is not UTF-8: byte {error.start} cannot be decoded.") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"Line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except RecursionError:
        raise _too_deep() from None
    _check_tree(value)
    return value


def parse_model(data: bytes, kind: type[T]) -> T:
    """The body as a `kind`. Raises MalformedJson or InvalidRequest; the latter lists every field that is wrong."""
    return validate(parse_json(data), kind)


def validate(value: Any, kind: type[T]) -> T:
    """A value that was parsed already, as a `kind`. Raises InvalidRequest with every field that is wrong."""
    if not isinstance(value, dict):
        raise InvalidRequest(f"Send a JSON object, not {_json_type(value)}.", errors=[])
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise invalid_request(error.errors(include_url=False, include_input=False)) from None


def invalid_request(errors: Any) -> InvalidRequest:
    """A problem that lists `errors` as pydantic and FastAPI report them."""
    found = [{"where": _where(error["loc"]), "message": _message(error)} for error in errors]
    listed = "; ".join(f"{item['where']}: {item['message']}" for item in found[:5])
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    return InvalidRequest(f"Correct these fields and send it again: {listed}{more}.", errors=found[:100])


async def read_bounded(request: Request, limit: int) -> bytes:
    """The whole body, at most `limit` bytes of it in memory. Raises TooLarge."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"This body may have at most {limit} bytes.", limit=limit)
    return bytes(body)


async def read_json(request: Request, kind: type[T], limit: int) -> T:
    """The request's JSON body as a `kind`. Raises UnsupportedMedia, TooLarge, MalformedJson or InvalidRequest."""
    media = media_type(request)
    if media != "application/json":
        raise UnsupportedMedia(f"Send application/json here, not {media or 'a body without a Content-Type'}.")
    return parse_model(await read_bounded(request, limit), kind)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MalformedJson(f"The key {json.dumps(twice[:100])} appears twice in one object; send it once.")
    return value


def _no_constant(name: str) -> float:
    raise MalformedJson(f"{name} is not JSON; send a finite number or null.")


def _integer(digits: str) -> int:
    if len(digits) > MAX_INTEGER_DIGITS:
        raise MalformedJson(f"An integer has {len(digits)} digits; at most {MAX_INTEGER_DIGITS} are accepted.")
    return int(digits)


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise MalformedJson(f"The number {digits[:40]} is larger than a double can hold.")
    return value


def _check_tree(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        for text in filter(lambda item: isinstance(item, str), level):
            _check_text(text)
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedJson("A string has a lone surrogate (\\ud800 to \\udfff); send valid Unicode.") from None


def _too_deep() -> MalformedJson:
    return MalformedJson(f"The JSON is nested more than {MAX_DEPTH} levels deep.")


def _json_type(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "body"


def _message(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field; remove it or check its spelling"
    return str(error["msg"]).removeprefix("Value error, ")
