"""`pgdyno export`: a workload's initial rows as CSV files."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stderr, stdout
from pgdyno.model.progress import ExportProgress
from pgdyno.model.units import bytes_text, count_text
from pgdyno.model.wording import plural

_DEFAULTS = defaults(api.export)
_LOADED_AT = api.LOADED_AT.replace(tzinfo=None)  # typer knows no zones


class Exportable(StrEnum):
    """Workloads whose rows can be written into files."""

    tpcc = "tpcc"


class Tables(StrEnum):
    """Whose tables."""

    bmsql = "bmsql"
    spec = "spec"


def export(
    workload: Annotated[Exportable, typer.Argument(help="What to export.")],
    folder: Annotated[
        Path, typer.Argument(help="The folder of the files; empty, or not there yet.")
    ],
    warehouses: Annotated[
        int, typer.Option("--warehouses", "-w", min=1, help="Warehouses to write.")
    ] = _DEFAULTS["warehouses"],
    schema: Annotated[
        Tables, typer.Option(help="Files as BenchmarkSQL 5 writes them, or of our own tables.")
    ] = Tables.bmsql,
    seed: Annotated[int, typer.Option(help="The rows follow from this number.", min=0)] = _DEFAULTS[
        "seed"
    ],
    loaded_at: Annotated[
        datetime, typer.Option(help="The time that rows carry, UTC.")
    ] = _LOADED_AT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a workload's initial rows into CSV files, one for each table.

    The same options give the same bytes. `pgdyno load tpcc --from-csv FOLDER` reads them back.

    Example: pgdyno export tpcc files --warehouses 10
    """
    with Progress(
        TextColumn("export"), BarColumn(), TextColumn("{task.fields[detail]}", markup=False),
        console=stderr, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("export", total=None, detail="")

        def show(state: ExportProgress) -> None:
            detail = f"{plural(state.rows, 'row', thousands=True)}  {bytes_text(state.bytes)}"
            bar.update(task, total=state.rows_total, completed=state.rows, detail=detail)

        report = api.export(
            folder, warehouses=warehouses, schema=schema.value, seed=seed, loaded_at=loaded_at,
            on_event=show,
        )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps(asdict(report)))
        return
    for file in report.files:
        stdout.print(f"{file.name:<16} {count_text(file.rows):>15} rows  {bytes_text(file.bytes)}")
    stdout.print(f"{report.seconds:.2f} s")
