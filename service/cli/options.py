"""Options that several commands share, each written once."""

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs; a failure as a problem document.")]
ServerOption = Annotated[str | None, typer.Option("--server", help="The API's address. [default: ATOLL_SERVER]")]
OutputFile = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]
