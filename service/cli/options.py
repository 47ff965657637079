"""Options that several commands share, each written once."""

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs; a failure as a problem document.")]
ServerOption = Annotated[str, typer.Option("--server", envvar="ATOLL_SERVER", help="The API's address.")]
OutputFile = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]

DEFAULT_SERVER = "http://127.0.0.1:8080"
