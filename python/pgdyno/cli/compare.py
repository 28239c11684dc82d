"""`pgdyno compare`: stages, run files and results of other tools beside each other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from pgdyno import api
from pgdyno.cli.console import stdout


def compare(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="Run files, RUN.sqlite:stage, or what other tools printed (FILE:2: its second"
            " result). The first is what the others are compared with.",
        ),
    ],
    runs: Annotated[
        Path | None,
        typer.Option(
            help="A folder of further run files: how much runs of one stage differ from session to"
            " session is measured from them."
        ),
    ] = None,
    ratio: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Set results of other tools beside the first, with all that differs:"
            " nopm_committed, nopm_ended, tpm_all_ended or tps.",
        ),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            metavar="RATIO",
            help="Exit with 1 if a stage lies below this ratio to the first, e.g. 0.95: its whole"
            " interval. One that stands at it or above is failed in 2.5% of cases at most.",
        ),
    ] = None,
    format_: Annotated[
        Literal["text", "json"], typer.Option("--format", "-f", help="text or json.")
    ] = "text",
) -> None:
    """Compare stages and runs, also of different days and hosts, with all that differs.

    Stages of one run are paired by their rounds. Runs of different sessions are not: the interval
    then holds the noise between sessions, which takes three or more runs of one stage on the same
    host by the same load. Where that is not known there is a ratio and no interval, and where load
    or measurement differ, no verdict. Results of other tools never have either. With --fail-below
    nothing is passed where there is no interval: exit code 2, with how to find out.

    Example: pgdyno compare monday.sqlite:tuned tuesday.sqlite:tuned --runs runs
    """
    found = api.compare(*subjects, runs=runs, ratio=ratio, fail_below=fail_below)
    if format_ == "json":
        sys.stdout.write(found.json())
    else:
        for line in found.lines():
            stdout.print(Text(line))
    if found.falls_below:
        raise typer.Exit(1)
