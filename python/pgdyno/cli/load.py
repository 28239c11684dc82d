"""`pgdyno load`: fills a database without a plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn

from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.endpoint import ConninfoOption, endpoint
from pgdyno.load import loader, room
from pgdyno.load.consistency import check, require
from pgdyno.load.csv_files import load_csv, read_folder
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.reading import finite
from pgdyno.model.units import bytes_text, count_text, seconds_text
from pgdyno.stage.place import place_of

_OF_GENERATED_ROWS = (
    "scale", "seed", "connections", "schema", "partitions", "order",
    "drop_ours", "resume", "top_up", "estimate",
)  # fmt: skip


class Loadable(StrEnum):
    """Workloads that have data."""

    tpcc = "tpcc"
    tpcb = "tpcb"


class Schema(StrEnum):
    """Names and types of TPC-C's tables."""

    spec = "spec"
    bmsql = "bmsql"


class Order(StrEnum):
    """In which order orders lie in their tables."""

    warehouse = "warehouse"
    arrival = "arrival"


def load(
    ctx: typer.Context,
    workload: Annotated[Loadable, typer.Argument(help="What to load.")],
    conninfo: ConninfoOption = "",
    scale: Annotated[
        int,
        typer.Option(
            "--warehouses",
            "--scale",
            "-w",
            "-s",
            min=1,
            help="tpcc: about 100 MiB each; tpcb: 100,000 accounts each.",
        ),
    ] = 10,
    seed: Annotated[int, typer.Option(help="Rows of tpcc are a function of it.", min=0)] = 42,
    connections: Annotated[
        int | None, typer.Option("--connections", "-c", min=1, help="Default: from the cores.")
    ] = None,
    schema: Annotated[Schema, typer.Option(help="Of tpcc.")] = Schema.spec,
    foreign_keys: Annotated[bool, typer.Option(help="Add them at the end.")] = False,
    partitions: Annotated[
        str | None,
        typer.Option(metavar="hash:N|range:N", help="Partition tpcc's tables by warehouse."),
    ] = None,
    order: Annotated[
        Order, typer.Option(help="Orders of tpcc district by district, or as they arrived.")
    ] = Order.warehouse,
    drop_ours: Annotated[
        bool,
        typer.Option(
            "--drop-ours", help="Drop first what an earlier load of pgdyno recorded as made."
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a load that did not end.")
    ] = False,
    top_up: Annotated[
        bool, typer.Option("--top-up", help="Add what is missing to a smaller load.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print size and time; load nothing.")
    ] = False,
    check_after: Annotated[
        bool, typer.Option("--check/--no-check", help="Check the conditions afterwards.")
    ] = True,
    from_csv: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Load tpcc from files, ours or BenchmarkSQL's."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Load a workload's tables by COPY from several connections, with indexes and vacuum."""
    if from_csv is not None:
        _refuse_beside_csv(ctx, workload)
        files = read_folder(from_csv)
        spec, connection = files.spec(foreign_keys), endpoint(conninfo)
        report = _shown(lambda show: load_csv(connection, files, foreign_keys=foreign_keys,
                                              progress=show))  # fmt: skip
    else:
        spec = _spec(workload, scale, seed, schema, foreign_keys, partitions, order)
        how = loader.How(connections, intent=_intent(drop_ours, resume, top_up))
        connection = endpoint(conninfo)
        report = _generate(connection, spec, how, estimate=estimate, as_json=as_json)
    if check_after:
        require(conditions := check(connection, loader.describe(spec)["conditions"]))
        report["conditions"] = len(conditions)
    _print(report, as_json=as_json)


def _refuse_beside_csv(ctx: typer.Context, workload: Loadable) -> None:
    if workload is not Loadable.tpcc:
        raise PlanError(f"--from-csv is given, the workload is {workload.value}",
                        hint="Only tpcc is loaded from files.")  # fmt: skip
    for option in _OF_GENERATED_ROWS:
        source = ctx.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            name = "warehouses" if option == "scale" else option.replace("_", "-")
            raise PlanError(
                f"--from-csv and --{name} are given",
                hint="The files say what they hold, and are loaded in one transaction.",
            )


def _generate(
    connection: Connection,
    spec: dict[str, Any],
    how: loader.How,
    *,
    estimate: bool,
    as_json: bool,
) -> dict[str, Any]:
    """Say size and time, and load; the command ends where only the estimate is asked for."""
    place = place_of(connection)
    how = replace(how, server_memory_bytes=place.memory_bytes)
    estimated = loader.estimate(connection, spec, how)
    if estimate and as_json:
        stdout.print_json(json.dumps(estimated))
    else:
        (stdout if estimate else stderr).print(room.told(estimated, place))
    room.require_room(estimated, place)
    if estimate:
        raise typer.Exit
    return _shown(lambda show: loader.load(connection, spec, how, progress=show))


def _spec(
    workload: Loadable,
    scale: int,
    seed: int,
    schema: Schema,
    foreign_keys: bool,
    partitions: str | None,
    order: Order,
) -> dict[str, Any]:
    """The workload as the core wants it; what only TPC-C has is refused for others."""
    if workload is Loadable.tpcc:
        return {
            "kind": "tpcc", "warehouses": scale, "seed": seed, "schema": schema.value,
            "foreign_keys": foreign_keys, "partitions": _partitions(partitions, scale),
            "order": order.value,
        }  # fmt: skip
    for name, given in (
        ("--schema", schema is not Schema.spec),
        ("--partitions", partitions is not None),
        ("--order", order is not Order.warehouse),
    ):
        if given:
            raise PlanError(f"{name} is given, the workload is {workload.value}",
                            hint=f"Only tpcc has {name}.")  # fmt: skip
    return {"kind": workload.value, "scale": scale, "foreign_keys": foreign_keys}


def _partitions(text: str | None, warehouses: int) -> dict[str, Any] | None:
    if text is None:
        return None
    by, _, count = text.partition(":")
    if by not in ("hash", "range") or not count.isdecimal():
        raise PlanError(
            f"--partitions is {text}, known are hash:N and range:N",
            hint="For example --partitions range:4.",
        )
    if not 1 <= int(finite(count)) <= warehouses:
        raise PlanError(
            f"--partitions is {text}, allowed are 1 to {warehouses}, one for each warehouse",
            hint="More would stay empty.",
        )
    return {"by": by, "count": int(count)}


def _intent(drop_ours: bool, resume: bool, top_up: bool) -> loader.Intent | None:
    asked: list[loader.Intent] = []
    if drop_ours:
        asked.append("drop_ours")
    if resume:
        asked.append("resume")
    if top_up:
        asked.append("top_up")
    if len(asked) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise PlanError(f"{names} are given",
                        hint="A load is dropped, gone on with, or added to.")  # fmt: skip
    return asked[0] if asked else None


def _shown(work: Callable[[Callable[[dict[str, Any]], None]], dict[str, Any]]) -> dict[str, Any]:
    with _bar() as bar:
        task = bar.add_task("load", total=1.0, phase="connecting", detail="")

        def show(state: dict[str, Any]) -> None:
            left = state["seconds_left"]
            detail = (
                f"{count_text(state['rows'])} rows  {bytes_text(state['bytes_per_s'])}/s"
                f"  {seconds_text(left) + ' left' if left is not None else ''}"
            )
            bar.update(task, completed=state["share"], phase=state["phase"], detail=detail)

        return work(show)


def _print(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        stdout.print_json(json.dumps(report))
        return
    for phase in report["phases"]:
        stdout.print(f"{phase['name']:<12} {phase['seconds']:7.2f} s")
    for choice in report.get("choices", ()):
        stdout.print(f"{choice['name']}: {choice['value']} ({choice['why']})", highlight=False)
    if before := report.get("steps_done_before"):
        stdout.print(f"{before} steps were done before")
    on_disk = f", {bytes_text(report['disk_bytes'])} on disk" if "disk_bytes" in report else ""
    stdout.print(
        f"{count_text(report['rows'])} rows, {bytes_text(report['bytes'])} of COPY data{on_disk},"
        f" {report['seconds']:.2f} s"
    )
    if "conditions" in report:
        stdout.print(f"{report['conditions']} consistency conditions hold")


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.fields[phase]:<12}", markup=False), BarColumn(),
        TextColumn("{task.fields[detail]}", markup=False), console=stderr, transient=True,
    )  # fmt: skip
