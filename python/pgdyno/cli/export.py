"""`pgdyno export`: a workload's initial rows as CSV files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn

from pgdyno.cli.console import stderr, stdout
from pgdyno.load.export import LOADED_AT_UNIX_S
from pgdyno.load.export import export as export_files
from pgdyno.model.units import bytes_text, count_text

_LOADED_AT = datetime.fromtimestamp(LOADED_AT_UNIX_S, UTC).replace(tzinfo=None)


class Exportable(StrEnum):
    """Workloads whose rows can be written into files."""

    tpcc = "tpcc"


class Tables(StrEnum):
    """Whose tables."""

    bmsql = "bmsql"
    spec = "spec"


def export(
    workload: Annotated[Exportable, typer.Argument(help="What to export.")],
    folder: Annotated[Path, typer.Argument(help="Empty, or not there yet.")],
    warehouses: Annotated[int, typer.Option("--warehouses", "-w", min=1)] = 10,
    schema: Annotated[
        Tables, typer.Option(help="Files as BenchmarkSQL 5 writes them, or of our own tables.")
    ] = Tables.bmsql,
    seed: Annotated[int, typer.Option(help="Rows are a function of it.", min=0)] = 42,
    loaded_at: Annotated[
        datetime, typer.Option(help="The time that rows carry, UTC.")
    ] = _LOADED_AT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a workload's initial rows into CSV files, one for each table.

    The same options give the same bytes. `pgdyno load tpcc --from-csv FOLDER` reads them back.
    """
    spec = {"kind": workload.value, "warehouses": warehouses, "seed": seed, "schema": schema.value}
    with Progress(
        TextColumn("export"), BarColumn(), TextColumn("{task.fields[detail]}", markup=False),
        console=stderr, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("export", total=None, detail="")

        def show(state: dict[str, Any]) -> None:
            detail = f"{count_text(state['rows'])} rows  {bytes_text(state['bytes'])}"
            bar.update(task, total=state["rows_total"], completed=state["rows"], detail=detail)

        at = int(loaded_at.replace(tzinfo=UTC).timestamp())
        report = export_files(folder, spec, loaded_at_unix_s=at, progress=show)
    if as_json:
        stdout.print_json(json.dumps(report))
        return
    for file in report["files"]:
        stdout.print(f"{file['name']:<16} {count_text(file['rows']):>15} rows  "
                     f"{bytes_text(file['bytes'])}")  # fmt: skip
    stdout.print(f"{report['seconds']:.2f} s")
