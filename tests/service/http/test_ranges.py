"""`Range`, by RFC 9110 and the contract."""

import pytest

from service.http.ranges import Span, UnsatisfiableRangeError, parse_range

SERVED = {
    "bytes=0-0": Span(0, 1),
    "bytes=0-9": Span(0, 10),
    "bytes=3-5": Span(3, 6),
    "bytes=5-": Span(5, 10),
    "bytes=9-": Span(9, 10),
    "bytes=-1": Span(9, 10),
    "bytes=-10": Span(0, 10),
    "bytes=-99": Span(0, 10),
    "bytes=0-99": Span(0, 10),
    "bytes=0-" + "9" * 50: Span(0, 10),
    "BYTES=1-2": Span(1, 3),
    "bytes= 1-2 ": Span(1, 3),
}
WHOLE = ["bytes=0-1,3-4", "bytes=" + ",".join(["0-0"] * 101), "bytes=,", "lines=1-2", "x-y=z"]
UNSATISFIABLE = [
    "bytes=10-", "bytes=10-20", "bytes=500-0", "bytes=5-4", "bytes=-0", "bytes=-", "bytes=", "bytes", "", "bytes=a-b",
    "bytes=1", "bytes=1-2-3", "bytes=--1", "bytes=+1-2", "bytes=0x1-2", "bytes=\u0661-\u0662", "bytes=1.0-2", "0-5",
    "bytes=" + "9" * 200 + "-",
]  # fmt: skip


@pytest.mark.parametrize(("header", "span"), SERVED.items())
def test_one_range_is_served(header: str, span: Span) -> None:
    assert parse_range(header, 10) == span


@pytest.mark.parametrize("header", WHOLE)
def test_several_ranges_and_other_units_mean_the_whole(header: str) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize("header", UNSATISFIABLE)
def test_a_range_without_a_byte_is_unsatisfiable(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        parse_range(header, 10)


@pytest.mark.parametrize("header", ["bytes=0-", "bytes=0-0", "bytes=-1"])
def test_an_empty_content_has_no_range(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        parse_range(header, 0)
