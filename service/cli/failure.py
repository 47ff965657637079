"""What a user sees of an error: one line on stderr that says what to do, and the exit code. Never a trace unasked."""

import traceback

import typer
from pydantic import ValidationError

from service.errors import AtollError, CommandError

_WORKER_MODULES = frozenset({"google", "ml_dtypes", "numpy", "onnx", "onnxruntime", "tensorrt_rtx_bindings"})
_PYDANTIC_PREFIX = "Value error, "


def report(error: Exception, *, as_json: bool, debug: bool) -> int:
    """Show `error` (with `as_json` as a problem on stdout as well) and return the exit code."""
    if debug:
        traceback.print_exception(error)
    known = explain(error)
    if as_json:
        typer.echo(known.problem().model_dump_json(exclude_none=True))
    typer.echo(f"atoll: {one_line(known)}", err=True)
    return known.exit_code


def explain(error: Exception) -> AtollError:
    """The error of our own tree that says the same."""
    match error:
        case AtollError():
            return error
        case typer.TyperException():
            message = error.format_message().replace(_PYDANTIC_PREFIX, "")
            return CommandError(f"{message} Try `atoll --help`, or `atoll COMMAND --help`.")
        case ValidationError():
            return CommandError("; ".join(_faults(error)))
        case ModuleNotFoundError() if str(error.name).partition(".")[0] in _WORKER_MODULES:
            return CommandError(f"{error.name} is not installed; this needs the worker: pip install 'atoll[worker]'")
        case OSError() if error.filename is not None:
            return CommandError(f"{error.filename}: {error.strerror}")
        case _:
            return AtollError(f"unexpected {type(error).__name__}: {error} (run `atoll --debug …` for the trace)")


def one_line(error: AtollError) -> str:
    """The error's detail on one line."""
    return " ".join(error.detail.split())


def _faults(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, fault['loc'])) or error.title}: {fault['msg'].removeprefix(_PYDANTIC_PREFIX)}"
        for fault in error.errors()
    ]
