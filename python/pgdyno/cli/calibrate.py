"""`pgdyno calibrate`: the ceiling of this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.status import Status
from rich.table import Table
from rich.text import Text

from pgdyno.calibrate import WARMUP_S, calibrate
from pgdyno.cli.bench_workload import Drivable
from pgdyno.cli.console import stderr, stdout
from pgdyno.load.loader import require_release
from pgdyno.model.calibration import Ceiling, Estimate
from pgdyno.model.errors import PlanError
from pgdyno.model.units import count_text, ns_text
from pgdyno.model.workload import Face, Pgbench, Tpcc, Workload
from pgdyno.stage.home import home, open_home
from pgdyno.store.calibration import add_ceilings

_FACES: tuple[Face, ...] = ("statement", "pipeline", "procedure")
_SEED = 42  # ceilings of the same requests can be compared


def calibrate_command(
    workload: Annotated[Drivable, typer.Argument(help="Whose statements.")] = Drivable.tpcc,
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
    require_release()
    one = _workload(workload, connections)
    workloads = [replace(one, face=each) for each in _faces(workload, face)]
    with Status("starting", console=stderr) as status:
        ceilings = list(
            calibrate(
                workloads,
                threads=threads,
                rounds=rounds,
                window_s=seconds,
                told=lambda what: status.update(Text(what)),
            )
        )
    kept = None
    if keep:
        with open_home(home()):  # marked as ours before anything is put there
            kept = add_ceilings(home(), ceilings)
    if as_json:
        stdout.print_json(json.dumps([asdict(ceiling) for ceiling in ceilings]))
        return
    _print(ceilings)
    if kept:
        stdout.print(f"kept in {kept}", soft_wrap=True)


def _faces(workload: Drivable, wanted: Sequence[str] | None) -> list[Face]:
    # One statement is its own procedure.
    names = _FACES[:2] if workload is Drivable.select_only else _FACES
    known: dict[str, Face] = {face: face for face in names}
    for face in wanted or ():
        if face not in known:
            raise PlanError(f"--face is {face!r}, {workload} has {', '.join(names)}")
    return [known[face] for face in (wanted or names)]


def _workload(kind: Drivable, connections: int) -> Workload:
    common = Workload(kind=kind.value, seed=_SEED, connections=connections, terminals=connections)
    if kind is Drivable.tpcc:
        return replace(common, tpcc=Tpcc(warehouses=max(1, connections // 10)))
    if kind in (Drivable.mix, Drivable.script):
        raise PlanError(
            f"the null server has no answers to a {kind}", "Calibrate with tpcc, tpcb, select-only."
        )
    return replace(common, pgbench=Pgbench(scale=max(1, connections)))


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
        f" {first.window_s:g} s after {min(WARMUP_S, first.window_s):g} s of warm-up"
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
