import pytest

from worker.precision.views.names import short, visible


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/blocks.0/Mul_1", "/blocks.0/Mul_1"),
        ("größe 层", "größe 层"),
        ("a\0b", "a\\x00b"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\nbreak\u2028", "line\\nbreak\\u2028"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_is_written_out(name: str, shown: str) -> None:
    assert visible(name) == shown
    assert visible(name).isprintable()


def test_a_long_name_keeps_both_ends() -> None:
    name = "/first/" + "x" * 500 + "/last"
    assert len(short(name)) <= 120
    assert short(name).startswith("/first/")
    assert short(name).endswith("/last")
