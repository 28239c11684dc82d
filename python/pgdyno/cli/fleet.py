"""`pgdyno fleet`: the hosts that a load comes from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from pgdyno import api
from pgdyno.cli.console import stdout
from pgdyno.cli.help import STYLE, Command, Group
from pgdyno.cli.run import BindirOption, ConninfoOption, PlanSource, SetOption
from pgdyno.model.units import ns_text

app = typer.Typer(
    name="fleet",
    help="The hosts that a plan's load comes from: look at them before it is driven.",
    cls=Group,
    no_args_is_help=True,
    **STYLE,
)


@app.callback()
def fleet() -> None:
    """The hosts that a plan's load comes from: look at them before it is driven.

    Example: pgdyno fleet check plan.toml
    """


@app.command("check", cls=Command)
def check(
    plan: PlanSource,
    overrides: SetOption = None,
    bindir: BindirOption = None,
    conninfo: ConninfoOption = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Measure the ceiling of hosts that have none for the plan's load."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Reach every host of a plan's [fleet], and compare versions, clocks, limits and ceilings.

    No server is reached. Hosts of other versions, one that is there twice and one that may not open
    its connections are refused. A ceiling is what the host's driver reaches against a server that
    does nothing.

    Example: pgdyno fleet check plan.toml --json
    """
    found = api.fleet(
        api.load_plan(plan, set=overrides or (), bindir=bindir, conninfo=conninfo),
        calibrate=calibrate,
    )
    if as_json:
        stdout.print_json(json.dumps([asdict(host) for host in found.hosts]))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("host", no_wrap=True)
    for head in ("clock ahead", "known to", "CPUs", "connections", "files", "ceiling"):
        table.add_column(head, justify="right")
    table.add_column("pgdyno")
    for host in found.hosts:
        machine = host.machine
        ceiling = host.ceiling_per_s
        table.add_row(
            host.name,
            f"{host.offset.ahead_s:+.6f} s",
            f"±{ns_text(host.offset.bound_ns)}",
            str(machine.cpus),
            str(host.connections),
            str(machine.descriptors_max),
            "not known" if ceiling is None else f"{ceiling:,.0f}/s",
            f"{machine.pgdyno}, Python {machine.python}",
        )
    stdout.print(table)
    for host in found.hosts:
        for remark in host.remarks:
            stdout.print(f"{host.name}: {remark}", markup=False, soft_wrap=True)
    if any(host.ceiling_per_s is None for host in found.hosts):
        stdout.print(
            "`--calibrate` measures ceilings that are not known. Where it did, the driver was not"
            " the limit, and what it could reach stays unknown.",
            soft_wrap=True,
        )
