"""The option of commands that write a run file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFileOption = Annotated[
    Path | None,
    typer.Option(help="The run file; its page goes beside it. Default: a file in runs/."),
]
