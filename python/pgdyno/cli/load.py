"""`pgdyno load`: fills a database without a plan."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn

from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.endpoint import ConninfoOption, endpoint
from pgdyno.load import loader
from pgdyno.load.consistency import check, require
from pgdyno.model.units import bytes_text, count_text, seconds_text


class Loadable(StrEnum):
    """Workloads that have data."""

    tpcc = "tpcc"


def load(
    workload: Annotated[Loadable, typer.Argument(help="What to load.")],
    conninfo: ConninfoOption = "",
    warehouses: Annotated[int, typer.Option("--warehouses", "-w", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="Rows are a function of it.", min=0)] = 42,
    connections: Annotated[
        int | None, typer.Option("--connections", "-c", min=1, help="Default: from the cores.")
    ] = None,
    foreign_keys: Annotated[bool, typer.Option(help="Add them at the end.")] = False,
    drop_ours: Annotated[
        bool, typer.Option(help="Drop the tables of an earlier load of pgdyno first.")
    ] = False,
    check_after: Annotated[
        bool, typer.Option("--check/--no-check", help="Check the twelve conditions afterwards.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Load a workload's tables by COPY from several connections, with indexes and vacuum."""
    spec = {"kind": workload.value, "warehouses": warehouses, "seed": seed,
            "foreign_keys": foreign_keys}  # fmt: skip
    connection = endpoint(conninfo)
    described = loader.describe(spec)
    with _bar() as bar:
        task = bar.add_task("load", total=None, phase="connecting", detail="")

        def show(state: dict[str, Any]) -> None:
            left = state["seconds_left"]
            detail = (
                f"{count_text(state['rows'])} rows  {bytes_text(state['bytes_per_s'])}/s"
                f"  {seconds_text(left) + ' left' if left is not None else ''}"
            )
            bar.update(task, total=state["rows_total"], completed=state["rows"],
                       phase=state["phase"], detail=detail)  # fmt: skip

        report = loader.load(
            connection, spec, connections=connections, drop_ours=drop_ours, progress=show
        )
    if check_after:
        conditions = check(connection, described["conditions"])
        require(conditions)
        report["conditions"] = len(conditions)
    if as_json:
        stdout.print_json(json.dumps(report))
        return
    for phase in report["phases"]:
        stdout.print(f"{phase['name']:<10} {phase['seconds']:7.2f} s")
    stdout.print(
        f"{count_text(report['rows'])} rows, {bytes_text(report['bytes'])} of COPY data,"
        f" {report['seconds']:.2f} s"
    )
    if check_after:
        stdout.print(f"{report['conditions']} consistency conditions hold")


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.fields[phase]:<12}"), BarColumn(),
        TextColumn("{task.fields[detail]}"), console=stderr, transient=True,
    )  # fmt: skip
