"""`pgdyno history`: the runs of a folder in the order of time, and a limit for CI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from pgdyno import api
from pgdyno.cli.console import stdout


def history(
    folder: Annotated[Path, typer.Argument(help="A folder of run files.")],
    fail_below: Annotated[
        float | None,
        typer.Option(
            metavar="RATIO",
            help="Exit with 1 if the newest run lies below this ratio to --against, e.g. 0.95. A"
            " stage that stands at it or above is failed in 2.5% of cases at most; each stage"
            " tells which drop is found in 80%.",
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run file that it is held against.")
    ] = None,
    format_: Annotated[
        Literal["text", "json"], typer.Option("--format", "-f", help="text or json.")
    ] = "text",
) -> None:
    """List the runs of a folder: one line a run and stage, and where a level changes.

    Changes take eight or more runs of one stage; a series without one gets one in 5% of cases at
    most. An interval takes three or more runs of one stage, its own among them; --fail-below takes
    three or more besides the newest, for the noise between sessions.

    Example: pgdyno history runs --fail-below 0.95 --against runs/baseline.sqlite
    """
    found = api.history(folder, fail_below=fail_below, against=against)
    if format_ == "json":
        sys.stdout.write(found.json())
    else:
        for line in found.lines():
            stdout.print(Text(line))
    if found.falls_below:
        raise typer.Exit(1)
