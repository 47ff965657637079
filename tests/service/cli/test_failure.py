import errno

import pytest
import typer

from service.cli.failure import explain, one_line, report
from service.errors import AtollError, CommandError, NotOnnx


@pytest.mark.parametrize(
    ("error", "slug", "says"),
    [
        (NotOnnx("m.onnx is text"), "not-onnx", "m.onnx is text"),
        (FileNotFoundError(errno.ENOENT, "No such file", "m.onnx"), "command", "m.onnx: No such file"),
        (ModuleNotFoundError("No module", name="onnx.checker"), "command", "pip install 'atoll[worker]'"),
        (ModuleNotFoundError("No module named 'odd'", name="odd"), "internal", "unexpected ModuleNotFoundError"),
        (typer.BadParameter("Value error, 'x' is not one of 'y'"), "command", "Invalid value: 'x' is not one of 'y'"),
        (ZeroDivisionError("by zero"), "internal", "unexpected ZeroDivisionError: by zero (run `atoll --debug"),
    ],
)
def test_every_error_has_a_cure(error: Exception, slug: str, says: str) -> None:
    known = explain(error)
    assert known.slug == slug
    assert says in one_line(known)


def test_details_of_several_lines_become_one() -> None:
    assert one_line(AtollError("In node 0\n  INVALID_NODE")) == "In node 0 INVALID_NODE"


@pytest.mark.parametrize(("debug", "traced"), [(True, True), (False, False)])
def test_a_trace_is_shown_only_on_demand(debug: bool, traced: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(CommandError("wrong"), as_json=False, debug=debug) == 2
    err = capsys.readouterr().err
    assert ("CommandError: wrong" in err) is traced
    assert err.endswith("atoll: wrong\n")
