"""JSON from outside: one meaning or none."""

import pytest
from pydantic import BaseModel, ConfigDict

from service.errors import InvalidRequest, MalformedJson
from service.http.json_body import parse_json, parse_model


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int = 1
    name: str = ""


MALFORMED = {
    "empty": (b"", "Line 1, column 1"),
    "cut": (b'{"a": ', "Line 1, column 7"),
    "duplicate key": (b'{"a": 1, "b": 2, "a": 3}', '"a" appears twice'),
    "nested duplicate": (b'[{"x": {"k": 1, "k": 1}}]', '"k" appears twice'),
    "NaN": (b'{"a": NaN}', "NaN"),
    "infinity": (b'{"a": -Infinity}', "-Infinity"),
    "overflow": (b'{"a": 1e999}', "1e999"),
    "huge integer": (b'{"a": ' + b"9" * 5000 + b"}", "5000 digits"),
    "deep": (b"[" * 100 + b"]" * 100, "64 levels"),
    "very deep": (b"[" * 100_000 + b"]" * 100_000, "64 levels"),
    "lone surrogate": (b'{"a": "\\ud800"}', "surrogate"),
    "lone surrogate in a key": (b'{"\\udfff": 1}', "surrogate"),
    "not UTF-8": (b'{"a": "\xff"}', "byte 7"),
    "byte order mark": (b"\xef\xbb\xbf{}", "BOM"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "byte 0"),
    "comment": (b"{} // no", "Extra data"),
    "trailing comma": (b"[1,]", "column"),
}


@pytest.mark.parametrize(("data", "detail"), MALFORMED.values(), ids=MALFORMED)
def test_what_can_be_misread_is_malformed(data: bytes, detail: str) -> None:
    with pytest.raises(MalformedJson) as caught:
        parse_json(data)
    assert detail in caught.value.detail
    assert len(caught.value.detail) < 300


def test_what_is_plain_is_read() -> None:
    text = '{"a": [1, -2.5, true, null, "é😀\\ud83d\\ude00"]}'
    assert parse_json(text.encode()) == {"a": [1, -2.5, True, None, "é😀😀"]}


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"[]", []),
        (b'"x"', []),
        (b"7", []),
        (b'{"size": "x"}', ["size"]),
        (b'{"colour": 1, "size": []}', ["size", "colour"]),
    ],
)
def test_every_wrong_field_is_named(data: bytes, where: list[str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_model(data, Spec)
    assert [error["where"] for error in caught.value.extensions["errors"]] == where


def test_an_unknown_field_says_what_to_do() -> None:
    with pytest.raises(InvalidRequest, match="colour: there is no such field; remove it or check its spelling"):
        parse_model(b'{"colour": "red"}', Spec)


def test_a_large_string_is_read() -> None:
    assert len(parse_json(b'"' + b"x" * 1_000_000 + b'"')) == 1_000_000
