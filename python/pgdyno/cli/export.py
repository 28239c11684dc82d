"""`pgdyno export`: a workload's initial rows as CSV files, or a run as Parquet files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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
from pgdyno.cli.typed import typed
from pgdyno.model.errors import PlanError
from pgdyno.model.loading import ExportedFile, ExportReport
from pgdyno.model.progress import ExportProgress
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural

_DEFAULTS = defaults(api.export)
_WORKLOAD = "tpcc"
_HOW = "Its rows become CSV files: `pgdyno export tpcc FOLDER`."
_OF_ROWS = ("warehouses", "schema", "seed", "loaded_at")
_LOADED_AT = api.LOADED_AT.replace(tzinfo=None)  # typer knows no zones


class Tables(StrEnum):
    """Whose tables."""

    bmsql = "bmsql"
    spec = "spec"


_SCHEMA = Tables(_DEFAULTS["schema"])


def export(
    ctx: typer.Context,
    what: Annotated[
        str, typer.Argument(help="`tpcc`: its initial rows as CSV files; or a run file.")
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of the files. Rows: empty, or not there yet. A run gets a folder of"
            " its own in it.",
            show_default="of a run: parquet",
        ),
    ] = None,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write a run as Parquet files, a table each.")
    ] = False,
    warehouses: Annotated[
        int, typer.Option("--warehouses", "-w", help="Warehouses to write.")
    ] = _DEFAULTS["warehouses"],
    schema: Annotated[
        Tables, typer.Option(help="Files as BenchmarkSQL 5 writes them, or of our own tables.")
    ] = _SCHEMA,
    seed: Annotated[int, typer.Option(help="The rows follow from this number.")] = _DEFAULTS[
        "seed"
    ],
    loaded_at: Annotated[
        datetime, typer.Option(help="The time that rows carry, UTC.")
    ] = _LOADED_AT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a workload's initial rows into CSV files, or a run into Parquet files.

    Rows: the same options give the same bytes. `pgdyno load tpcc --from-csv FOLDER` reads them
    back. Runs: DuckDB, polars and pandas read the files of many at once.

    Example: pgdyno export runs/demo.sqlite parquet --parquet
    """  # fmt: skip
    if what != _WORKLOAD:
        _refuse_beside_run(ctx, what, parquet=parquet)
        _run(Path(what), folder or Path("parquet"), as_json=as_json)
        return
    if parquet:
        raise PlanError(f"--parquet is given, and {what} is no run file", _HOW)
    if folder is None:
        raise PlanError(f"nothing names the folder for the rows of {what}", _HOW)
    report = _with_bar(
        lambda show: api.export(
            folder, warehouses=warehouses, schema=schema.value, seed=seed, loaded_at=loaded_at,
            on_event=show,
        )
    )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps(asdict(report)))
        return
    _print_files(report.files)
    stdout.print(f"{report.seconds:.2f} s")


def _refuse_beside_run(ctx: typer.Context, what: str, *, parquet: bool) -> None:
    if not parquet:
        raise PlanError(
            f"{what} is not {_WORKLOAD}, and --parquet is not given",
            "A run file is exported with --parquet; rows are exported of TPC-C alone.",
        )
    for option in typed(ctx, _OF_ROWS):
        raise PlanError(
            f"--parquet and --{option.replace('_', '-')} are given",
            "A run file says what it holds.",
        )


def _run(path: Path, folder: Path, *, as_json: bool) -> None:
    written = api.Run(path).parquet(folder)
    if as_json:
        stdout.print_json(json.dumps(asdict(written), default=str))
        return
    _print_files(written.files)
    stdout.print(str(written.folder), markup=False, soft_wrap=True)


def _print_files(files: Iterable[ExportedFile]) -> None:
    for file in files:
        count = plural(file.rows, "row", thousands=True)
        stdout.print(f"{file.name:<18} {count:>18}  {bytes_text(file.bytes)}")


def _with_bar(
    exported: Callable[[Callable[[ExportProgress], None]], ExportReport],
) -> ExportReport:
    with Progress(
        TextColumn("export"), BarColumn(), TextColumn("{task.fields[detail]}", markup=False),
        console=stderr, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("export", total=None, detail="")

        def show(state: ExportProgress) -> None:
            detail = f"{plural(state.rows, 'row', thousands=True)}  {bytes_text(state.bytes)}"
            bar.update(task, total=state.rows_total, completed=state.rows, detail=detail)

        return exported(show)
