"""`pgdyno load`: fills a database without a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import BarColumn, Progress, TextColumn

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.database_option import ConninfoOption, database
from pgdyno.cli.typed import typed
from pgdyno.model.errors import PlanError
from pgdyno.model.loading import HostLoaded
from pgdyno.model.numbers import finite
from pgdyno.model.progress import LoadProgress
from pgdyno.model.units import bytes_text, seconds_text
from pgdyno.model.wording import plural
from pgdyno.model.workload import Order, Partitions, Schema

_OF_GENERATED_ROWS = (
    "scale", "seed", "connections", "schema", "partitions", "order",
    "drop_ours", "resume", "top_up", "estimate", "hosts", "hosts_python", "ssh_config",
)  # fmt: skip
_DATA, _LOAD, _FLEET = defaults(api.Data), defaults(api.load), defaults(api.Fleet)


Loadable = Literal["tpcc", "tpcb"]
ScaleOption = Annotated[
    int,
    typer.Option(
        "--warehouses", "--scale", "-w", "-s",
        help="tpcc: about 100 MiB each; tpcb: 100,000 accounts each.",
    ),
]  # fmt: skip
ConnectionsOption = Annotated[
    int | None,
    typer.Option(
        "--connections", "-c",
        help="Connections that load at the same time. Default: by the cores.",
    ),
]  # fmt: skip
HostsOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOSTS",
        help="Hosts that copy the rows, each its own warehouses, e.g. local:a,ssh://b.",
    ),
]
PythonOption = Annotated[
    str, typer.Option(help="The Python that has pgdyno on hosts that are reached by SSH.")
]
SshOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Configuration of `ssh`, instead of your own ~/.ssh/config."),
]
DropOption = Annotated[
    bool,
    typer.Option("--drop-ours", help="Drop first what an earlier load of pgdyno recorded as made."),
]


def load(
    ctx: typer.Context,
    workload: Annotated[Loadable, typer.Argument(help="What to load.")],
    conninfo: ConninfoOption = "",
    scale: ScaleOption = _DATA["scale"],
    seed: Annotated[int, typer.Option(help="The rows of tpcc follow from this number.")] = _DATA[
        "seed"
    ],
    connections: ConnectionsOption = None,
    hosts: HostsOption = None,
    hosts_python: PythonOption = _FLEET["python"],
    ssh_config: SshOption = None,
    schema: Annotated[Schema, typer.Option(help="Names and types of tpcc's tables.")] = _DATA[
        "schema"
    ],
    foreign_keys: Annotated[
        bool, typer.Option("--foreign-keys", help="Add foreign keys when all rows are there.")
    ] = False,
    partitions: Annotated[
        str | None,
        typer.Option(metavar="hash:N|range:N", help="Partition tpcc's tables by warehouse."),
    ] = None,
    order: Annotated[
        Order,
        typer.Option(help="Lay tpcc's orders district by district, or as they arrived."),
    ] = _DATA["order"],
    drop_ours: DropOption = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a load that did not end.")
    ] = False,
    top_up: Annotated[
        bool, typer.Option("--top-up", help="Add what is missing to a smaller load.")
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Print size and time, or a refusal; load nothing."),
    ] = False,
    check_after: Annotated[
        bool, typer.Option("--check/--no-check", help="Check the conditions afterwards.")
    ] = _LOAD["check"],
    from_csv: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Load tpcc from files, ours or BenchmarkSQL's."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Load a workload's tables by COPY from several connections, with indexes and vacuum.

    Example: pgdyno load tpcc -d 'host=/run/postgresql dbname=tpcc' -w 10
    """
    if from_csv is not None:
        _refuse_beside_csv(ctx, workload)
        _print(_from_files(from_csv, conninfo, foreign_keys, check_after), as_json=as_json)
        return
    data = api.Data(
        workload, scale, seed, schema, foreign_keys, _partitions(partitions), order,
    )  # fmt: skip
    _refuse_strangers(data)
    intent = _intent(drop_ours, resume, top_up)
    fleet = _fleet(ctx, hosts, hosts_python, ssh_config)
    connection = database(conninfo)
    if estimate:
        _estimate(api.estimate_load(data, connection, connections=connections, intent=intent,
                                    fleet=fleet), as_json=as_json)  # fmt: skip
        return
    loaded = _shown(lambda show: api.load(
        data, connection, connections=connections, intent=intent, fleet=fleet, check=check_after,
        on_estimate=lambda needs: stderr.print(str(needs)), on_event=show,
    ))  # fmt: skip
    _print(loaded, as_json=as_json)


def _from_files(folder: Path, conninfo: str, foreign_keys: bool, check: bool) -> api.Loaded:
    connection = database(conninfo)
    return _shown(
        lambda show: api.load_files(
            folder, connection, foreign_keys=foreign_keys, check=check, on_event=show
        )
    )


def _refuse_beside_csv(ctx: typer.Context, workload: Loadable) -> None:
    if workload != "tpcc":
        raise PlanError(f"--from-csv is given, the workload is {workload}",
                        hint="Only tpcc is loaded from files.")  # fmt: skip
    for option in typed(ctx, _OF_GENERATED_ROWS):
        name = "warehouses" if option == "scale" else option.replace("_", "-")
        raise PlanError(
            f"--from-csv and --{name} are given",
            hint="The files say what they hold, and are loaded in one transaction.",
        )


def _refuse_strangers(data: api.Data) -> None:
    """Refuse options of TPC-C beside another workload, by their names."""
    try:
        data.record()
    except PlanError as error:
        raise PlanError(f"--{error.fact}", error.hint) from error


def _fleet(
    ctx: typer.Context, hosts: str | None, python: str, ssh_config: Path | None
) -> api.Fleet | None:
    """The hosts that copy the rows; None: this one."""
    if hosts is None:
        for option in typed(ctx, ("hosts_python", "ssh_config")):
            raise PlanError(f"--{option.replace('_', '-')} is given without --hosts",
                            hint="It says how hosts are reached.")  # fmt: skip
        return None
    names = tuple(name.strip() for name in hosts.split(","))
    return api.Fleet(names, python, None if ssh_config is None else str(ssh_config.absolute()))


def _estimate(needs: api.Needs, *, as_json: bool) -> None:
    if as_json:
        stdout.print_json(json.dumps(asdict(needs.estimate)))
    else:
        stdout.print(str(needs))
    needs.require()


def _partitions(text: str | None) -> Partitions | None:
    if text is None:
        return None
    by, _, count = text.partition(":")
    if by not in ("hash", "range") or not count.isdecimal():
        raise PlanError(
            f"--partitions is {text}, known are hash:N and range:N",
            hint="For example --partitions range:4.",
        )
    return Partitions("hash" if by == "hash" else "range", int(finite(count)))


def _intent(drop_ours: bool, resume: bool, top_up: bool) -> api.Intent | None:
    asked: list[api.Intent] = []
    if drop_ours:
        asked.append("drop_ours")
    if resume:
        asked.append("resume")
    if top_up:
        asked.append("top_up")
    if len(asked) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise PlanError(f"{names} are given",
                        hint="A load is dropped, resumed, or added to.")  # fmt: skip
    return asked[0] if asked else None


def _shown(work: Callable[[Callable[[LoadProgress], None]], api.Loaded]) -> api.Loaded:
    with _bar() as bar:
        task = bar.add_task("load", total=1.0, phase="connecting", detail="")

        def show(state: LoadProgress) -> None:
            left = state.seconds_left
            detail = (
                f"{plural(state.rows, 'row', thousands=True)}  {bytes_text(state.bytes_per_s)}/s"
                f"  {seconds_text(left) + ' left' if left is not None else ''}"
            )
            bar.update(task, completed=state.share, phase=state.phase, detail=detail)

        return work(show)


def _print(loaded: api.Loaded, *, as_json: bool) -> None:
    report, checked = loaded.report, loaded.checked
    if as_json:
        count = {} if checked is None else {"conditions": len(checked.conditions)}
        hosts = {one.name: asdict(one.report) for one in loaded.hosts}
        stdout.print_json(json.dumps(asdict(report) | count | ({"hosts": hosts} if hosts else {})))
        return
    stdout.print("Parts of the load, which overlap:")
    for phase in report.phases:
        stdout.print(f"  {phase.name:<12} {phase.seconds:7.2f} s")
    for choice in report.choices:
        stdout.print(f"{choice.name}: {choice.value} ({choice.why})", highlight=False)
    _print_hosts(loaded.hosts)
    if before := report.steps_done_before:
        stdout.print(f"{plural(before, 'step was', 'steps were')} done before")
    size = report.disk_bytes
    on_disk = f", {bytes_text(size)} on disk" if size is not None else ""
    stdout.print(
        f"{plural(report.rows, 'row', thousands=True)}, {bytes_text(report.bytes)} of COPY"
        f" data{on_disk},"
        f" {report.seconds:.2f} s"
    )
    if checked is not None:
        stdout.print(f"{plural(len(checked.conditions), 'consistency condition')} hold")


def _print_hosts(hosts: Sequence[HostLoaded]) -> None:
    for host in hosts:
        stdout.print(host.shown, highlight=False, markup=False)


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.fields[phase]:<12}", markup=False), BarColumn(),
        TextColumn("{task.fields[detail]}", markup=False), console=stderr, transient=True,
    )  # fmt: skip
