"""`pgdyno import`: results of other tools, with what is easily read wrong in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from pgdyno import api
from pgdyno.cli.console import say, stderr, stdout


def import_command(
    files: Annotated[list[Path], typer.Argument(help="What the tools printed or wrote.")],
    tool: Annotated[
        str | None,
        typer.Option(
            help=f"The tool that wrote all files: {', '.join(api.IMPORTED_TOOLS)}."
            " Default: each is known by its content."
        ),
    ] = None,
    warehouses: Annotated[
        int | None,
        typer.Option(help="Warehouses of the load, where the output does not tell."),
    ] = None,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="The files are repeats of one configuration.")
    ] = False,
    ratio: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Set the second result beside the first, with all that differs: nopm_committed,"
            " nopm_ended, tpm_all_ended or tps.",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="A run file that keeps results and texts, without secrets."),
    ] = None,
    format_: Annotated[
        Literal["text", "json"], typer.Option("--format", "-f", help="text or json.")
    ] = "text",
) -> None:
    """Read results of other tools, with what to mind of them.

    Their figures have no interval and get no verdict: each is one run, and what a tool did not tell
    stays unknown.

    Example: pgdyno import benchmarksql.log --warehouses 1000
    """
    with stderr.status(Text("")) as status:
        found = api.import_results(
            files,
            tool=tool,
            warehouses=warehouses,
            repeats=repeats,
            into=into,
            progress=lambda text: say(status, text),
        )
    if format_ == "json":
        sys.stdout.write(found.to_json(ratio))
        return
    for line in found.lines(ratio):
        stdout.print(Text(line))
    if into is not None:
        stdout.print(Text(f"Kept in {into}: `pgdyno report` shows them beside its stages."))
