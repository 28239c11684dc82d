"""`pgdyno plans`, `pgdyno demo` and `pgdyno init`: plans that are there, and a first one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from pgdyno import api
from pgdyno.cli.console import stdout
from pgdyno.cli.live_options import LiveOption, MetricsOption
from pgdyno.cli.run import QuickOption, run
from pgdyno.cli.run_file_option import RunFileOption


def plans() -> None:
    """List the plans that come with pgdyno; `pgdyno run` takes their names.

    Example: pgdyno plans
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    table.add_column("stages", justify="right")
    table.add_column("question")
    for row in api.plans().rows():
        table.add_row(str(row["name"]), str(row["stages"]), str(row["question"]))
    stdout.print(table)
    stdout.print("`pgdyno run NAME --dry-run` shows what each would do; nothing is touched.")


def demo(
    quick: QuickOption = False,
    live: LiveOption = None,
    metrics: MetricsOption = None,
    out: RunFileOption = None,
) -> None:
    """Measure two stages on a server of its own; the same as `pgdyno run demo`.

    Example: pgdyno demo --quick
    """
    run("demo", quick=quick, live=live, metrics=metrics, out=out)


def init(
    path: Annotated[Path, typer.Argument(help="The plan that is written.")] = Path("first.toml"),
    server: Annotated[
        str | None,
        typer.Option(
            help="The server: embedded, a folder of PostgreSQL's programs, or a connection string;"
            " asked for if not given."
        ),
    ] = None,
    warehouses: Annotated[
        int | None,
        typer.Option(min=1, help="How much data, at about 100 MB each; asked for if not given."),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="What is tried, e.g. synchronous_commit=off; asked for if not given."),
    ] = None,
) -> None:
    """Write a first plan of your own, after three questions.

    Example: pgdyno init first.toml --server embedded --setting wal_buffers=64MB
    """
    api.FirstPlan.require_new(path)
    usual = api.FirstPlan()
    if server is None:
        server = typer.prompt(
            "Which server: embedded, a folder of PostgreSQL's programs, or a connection string",
            usual.server, err=True,
        )  # fmt: skip
    if warehouses is None:
        warehouses = typer.prompt(
            "How many warehouses, at about 100 MB each", usual.warehouses, err=True, type=int
        )
    if setting is None:
        setting = typer.prompt("Which setting do you want to try", usual.setting, err=True)
    api.FirstPlan(server, warehouses, setting).write(path)
    stdout.print(f"{path} is written; next: pgdyno run {path} --dry-run", markup=False)
