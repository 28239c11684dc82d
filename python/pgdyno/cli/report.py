"""`pgdyno report`: a run file as a page, Markdown or JSON, or as what is to be configured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast, get_args

import typer

from pgdyno import api
from pgdyno.api import Form, Format
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stdout
from pgdyno.model.durability import LADDER

_Written: TypeAlias = Literal[Format, Form]
_REPORT, _CONFIGURATION = defaults(api.Run.report), defaults(api.Run.configuration)


def report(
    run_file: Annotated[Path, typer.Argument(help="The run file.")],
    format_: Annotated[
        _Written | None,
        typer.Option(
            "--format",
            "-f",
            help="html, md, json: all that was found. conf, sql (ALTER SYSTEM), sysctl: what to"
            " configure, line by line with reasons. diff: what that would change on a server."
            " Default: what the name of --out ends with; html where it ends with no kind of file.",
        ),
    ] = _REPORT["format"],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the report goes; `-` is standard output. Default: beside the run file."
        ),
    ] = None,
    losses: Annotated[
        Path | None,
        typer.Option(
            help="html, md, json: the run file of a drill; what disasters took from its stages"
            " stands beside those of the run, and beside those of the same rung. Default: the"
            " newest drill of this machine and PostgreSQL that lies beside the run file."
        ),
    ] = None,
    rung: Annotated[
        str,
        typer.Option(
            metavar="D0..D6",
            help="conf, sql, sysctl, diff: lowest rung of durability allowed."
            f" {'; '.join(f'{one}: {loses}' for one, loses in LADDER.items())}.",
        ),
    ] = _CONFIGURATION["lowest_rung"],
    stage: Annotated[
        str | None,
        typer.Option(
            help="conf, sql, sysctl, diff: a stage by name, instead of the best one allowed."
        ),
    ] = None,
    conninfo: Annotated[
        str | None,
        typer.Option("--conninfo", "-d", help="diff: the server, as libpq names it; only asked."),
    ] = None,
) -> None:
    """Write the report of a run, or what it recommends to configure.

    Example: pgdyno report runs/demo.sqlite --format conf --out -
    """
    form = format_ or api.written_as(out)
    run, path = api.Run(run_file, losses=losses), out or run_file.with_suffix(f".{form}")
    written = None if str(out) == "-" else path
    if form in get_args(Format):
        text = run.report(cast(Format, form), written)
    else:
        text = run.configuration(
            cast(Form, form), lowest_rung=rung, stage=stage, database=conninfo, out=written
        )
    if written is None:
        sys.stdout.write(text)
    else:
        stdout.print(str(written), soft_wrap=True)
