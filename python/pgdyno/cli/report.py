"""`pgdyno report`: a run file as a page for people, or as Markdown or JSON."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.console import stdout


class Format(StrEnum):
    """What a report is written as."""

    html = "html"
    md = "md"
    json = "json"


def report(
    run_file: Annotated[Path, typer.Argument(help="The run file.")],
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="Format of the report.")
    ] = Format.html,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the report goes; `-` is standard output. Default: beside the run file."
        ),
    ] = None,
) -> None:
    """Write the report of a run; needs nothing but the run file.

    Example: pgdyno report runs/20261121-224500-demo.sqlite --format md --out -
    """
    if str(out) == "-":
        sys.stdout.write(api.Run(run_file).report(format_.value))
        return
    path = out or run_file.with_suffix(f".{format_.value}")
    api.Run(run_file).report(format_.value, path)
    stdout.print(str(path), soft_wrap=True)
