"""`pgdyno diagnose`: what limits each stage of a run, in plain English."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pgdyno import api


def diagnose(
    run_file: Annotated[Path, typer.Argument(help="The run file.")],
    stage: Annotated[
        str | None, typer.Option(help="One stage by name. Default: all of them.")
    ] = None,
    format_: Annotated[
        Literal["text", "json"],
        typer.Option("--format", "-f", help="text: sentences. json: all figures, in base units."),
    ] = "text",
) -> None:
    """Say what limits each stage of a run: the limit, its proof, what was cleared, what is unknown.

    Example: pgdyno diagnose runs/demo.sqlite
    """
    found = api.diagnose(run_file, stage)
    sys.stdout.write(found.json() if format_ == "json" else found.text())
