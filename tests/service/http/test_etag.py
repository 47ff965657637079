"""Comparison of entity tags."""

import pytest

from service.http.etag import matches_strongly, matches_weakly, strong, weak


@pytest.mark.parametrize(
    ("header", "etag", "matches"),
    [
        ('"a"', '"a"', True),
        ('W/"a"', '"a"', True),
        ('"a"', 'W/"a"', True),
        ('"b", W/"a"', '"a"', True),
        ("*", '"a"', True),
        ('"b"', '"a"', False),
        ("a", '"a"', False),
        ("", '"a"', False),
        ('"a, b"', '"a"', False),
    ],
)
def test_if_none_match_compares_weakly(header: str, etag: str, matches: bool) -> None:
    assert matches_weakly(header, etag) is matches


@pytest.mark.parametrize(
    ("header", "etag", "matches"),
    [
        ('"a"', '"a"', True),
        ('W/"a"', 'W/"a"', False),
        ('W/"a"', '"a"', False),
        ('"b"', '"a"', False),
        ("Tue, 01 Dec 2026 00:00:00 GMT", '"a"', False),
    ],
)
def test_if_range_compares_strongly(header: str, etag: str, matches: bool) -> None:
    assert matches_strongly(header, etag) is matches


def test_tags_are_quoted() -> None:
    assert (strong("x"), weak("x")) == ('"x"', 'W/"x"')
