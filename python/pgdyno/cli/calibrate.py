"""`pgdyno calibrate`: the ceiling of this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.status import Status
from rich.table import Table
from rich.text import Text

from pgdyno import api
from pgdyno.cli.console import stderr, stdout
from pgdyno.model.calibration import Ceiling, Estimate
from pgdyno.model.units import count_text, ns_text
from pgdyno.model.workload import WorkloadKind


def calibrate_command(
    workload: Annotated[WorkloadKind, typer.Argument(help="Whose statements.")] = "tpcc",
    face: Annotated[
        list[str] | None, typer.Option(help="May be repeated. Default: all of the workload's.")
    ] = None,
    connections: Annotated[int, typer.Option("--connections", "-c", min=1)] = 8,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Of the driver. Default: half of the CPUs.")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", "-T", min=0.5, help="A window.")] = 3.0,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Windows for each face.")] = 5,
    keep: Annotated[bool, typer.Option(help="Store the result for later reports.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure what the driver reaches on this machine against a server that does nothing.

    The result is kept in PGDYNO_HOME/calibration.json; reports then say how near to its ceiling
    the client was. Let nothing else run meanwhile.
    """
    with Status("starting", console=stderr) as status:
        ceilings = api.calibrate(
            workload, faces=face or (), connections=connections, threads=threads, seconds=seconds,
            rounds=rounds, keep=keep, on_event=lambda what: status.update(Text(what)),
        )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps([asdict(ceiling) for ceiling in ceilings]))
        return
    _print(ceilings)
    if keep:
        stdout.print(f"kept in {api.calibration_file()}", soft_wrap=True)


def _print(ceilings: Sequence[Ceiling]) -> None:
    columns = ("face", "transactions/s", "round trips/s", "CPU a transaction", "CPU a round trip",
               "a second of CPU", "limit")  # fmt: skip
    table = Table(*columns, box=None, pad_edge=False)
    for ceiling in ceilings:
        table.add_row(
            ceiling.face,
            _count(ceiling.transactions_per_s),
            _count(ceiling.round_trips_per_s),
            _time(ceiling.cpu_s_per_transaction),
            _time(ceiling.cpu_s_per_round_trip),
            f"{count_text(ceiling.per_core_s)} transactions",
            ceiling.limit,
        )
    stdout.print(table)
    first = ceilings[0]
    interval = (
        f"typical value and {first.transactions_per_s.confidence:.0%} interval of"
        if first.transactions_per_s.n > 1
        else "no interval,"
    )
    stdout.print(
        f"{first.workload}, {first.connections} connections on {first.threads} driver threads,"
        f" Unix socket; {interval} n = {first.transactions_per_s.n} windows of"
        f" {first.window_s:g} s after {min(api.WARMUP_S, first.window_s):g} s of warm-up"
    )
    shared = first.driver_cpus == first.server_cpus
    stdout.print(
        f"driver on CPU {_list(first.driver_cpus)}, null server on CPU {_list(first.server_cpus)}"
        + (": they share it, only CPU times hold" if shared else "")
    )
    for ceiling in ceilings:
        if ceiling.limit != "driver":
            stdout.print(_note(ceiling))


def _note(ceiling: Ceiling) -> str:
    server = "" if ceiling.server_wanted is None else f", null server {ceiling.server_wanted:.0%}"
    return (
        f"face {ceiling.face}: the limit was the {ceiling.limit} (busiest driver thread wanted"
        f" {ceiling.driver_wanted:.0%} of the time{server}): the driver's own ceiling is higher"
    )


def _list(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))


def _count(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return count_text(estimate.centre)
    return (
        f"{count_text(estimate.centre)} [{count_text(estimate.low)}, {count_text(estimate.high)}]"
    )


def _time(estimate: Estimate) -> str:
    return ns_text(estimate.centre * 1e9)
