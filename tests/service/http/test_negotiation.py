import pytest
from starlette.requests import Request

from service.http.negotiation import media_type, prefers

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("TEXT/HTML; q=1", True),
        ("text/*, application/json;q=0.5", True),
        ("application/json;q=0.2, text/html;q=0.3", True),
        (None, False),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/html", False),
        ("application/json, text/html;q=0.9", False),
        ("text/html;q=0, */*", False),
        ("text/html;q=much", False),
        ("text/html;q=nan", False),
        ("text/html;q=2", False),
        (",;,q=1", False),
    ],
)
def test_html_must_be_preferred_not_only_accepted(accept: str | None, html: bool) -> None:
    assert prefers(accept, "text/html", over="application/json") is html


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([(b"content-type", b"application/json")], "application/json"),
        ([(b"content-type", b" Multipart/Form-Data ; boundary=AbC")], "multipart/form-data"),
        ([(b"content-type", b"")], ""),
        ([], ""),
    ],
)
def test_the_media_type_of_a_body_has_neither_case_nor_parameters(
    headers: list[tuple[bytes, bytes]], expected: str
) -> None:
    assert media_type(Request({"type": "http", "headers": headers})) == expected
