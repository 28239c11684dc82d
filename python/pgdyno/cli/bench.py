"""`pgdyno bench`: drives a loaded database without a plan."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from pgdyno.cli import bench_options as options
from pgdyno.cli.bench_workload import Given, bench_workload
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.endpoint import ConninfoOption, endpoint
from pgdyno.cli.live import rates_text
from pgdyno.conduct import drive_alone
from pgdyno.drive.driver import Driven
from pgdyno.load.loader import require_release
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Rung
from pgdyno.model.units import count_text, ns_text
from pgdyno.stage.home import home
from pgdyno.stage.host import this_machine
from pgdyno.stats.ceiling import ceiling_per_s, fitting
from pgdyno.stats.client_limit import ceiling_share, client_limit, load_of
from pgdyno.store.calibration import read_ceilings


def bench(
    workload: options.WorkloadArgument,
    file: options.FileArgument = None,
    conninfo: ConninfoOption = "",
    connections: options.Connections = 8,
    terminals: options.Terminals = None,
    threads: options.Threads = None,
    warmup: options.Warmup = 5.0,
    seconds: options.Seconds = 30.0,
    face: options.FaceOption = "statement",
    isolation: options.Isolation = "read committed",
    seed: options.Seed = None,
    databases: options.Databases = 1,
    rate: options.Rate = None,
    poisson: options.Poisson = False,
    requests: options.Requests = None,
    mix: options.MixOption = None,
    rules: options.Rules = None,
    delivery: options.Delivery = None,
    home: options.Home = None,
    keying: options.Keying = None,
    think: options.Think = None,
    files: options.Files = None,
    variables: options.Variables = None,
    scale: options.Scale = None,
    statements: options.Statements = False,
    as_json: options.AsJson = False,
) -> None:
    """Drive a loaded database for a while and print throughput, latencies and the driver's cost.

    Example: [bold]pgdyno bench tpcc -d 'dbname=tpcc' -c 8 --face pipeline[/]
    """
    require_release()
    given = Given(
        kind=workload, file=file, connections=connections, terminals=terminals, threads=threads,
        face=face, isolation=isolation, seed=seed, databases=databases, rate=rate,
        poisson=poisson, requests=requests, mix=mix, rules=rules, delivery=delivery, home=home,
        keying=keying, think=think, files=tuple(files or ()),
        variables=tuple(variables or ()), scale=scale,
    )  # fmt: skip
    given.refuse_strangers()
    connection = endpoint(conninfo)
    driven_workload, c_load = bench_workload(given, connection)
    protocol = Protocol(1, warmup, seconds, 10.0, False, 0.03, 0.95, Rung.D0)
    with Live(Text("connecting"), console=stderr, transient=True, refresh_per_second=4) as live:
        driven, idle_share = drive_alone(
            connection, driven_workload, protocol, c_load,
            lambda state: live.update(Text(_progress(state))),
        )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps(_as_json(driven, driven_workload)))
    else:
        _print(driven, driven_workload)
        if statements:
            _print_statements(driven)
        stdout.print(_client_text(driven, driven_workload, idle_share, connection))
    for error in driven.errors:
        stderr.print(f"{error['count']} × {error['sqlstate']}: {error['example']}", markup=False)
    if driven.error:
        raise DriveError(driven.error)


def _progress(state: dict[str, Any]) -> str:
    now = rates_text(state.get("last_second") or {})
    return f"{state['phase']}: {now} now, {state['phase_left_s']:.0f} s left"


def _as_json(driven: Driven, workload: Workload) -> dict[str, Any]:
    nopm = driven.nopm if workload.headline == "NOPM" else None
    figures = {"headline": workload.headline, "nopm": nopm, "tpm_total": driven.tpm_total,
               "tps": driven.tps}  # fmt: skip
    return {**figures, "seed": workload.seed, **asdict(replace(driven, series=()))}


def _print(driven: Driven, workload: Workload) -> None:
    columns = ("kind", "committed", "rolled back", "failed", "retries", "p50", "p95", "p99", "max")
    table = Table(*columns, box=None, pad_edge=False)
    for kind in driven.kinds:
        counts = kind.window
        retries = counts.retries_40001 + counts.retries_40p01
        numbers = (counts.succeeded, counts.rolled_back, counts.failed, retries)
        latencies = (kind.response_ns[name] for name in ("p50", "p95", "p99", "max"))
        table.add_row(kind.kind, *map(count_text, numbers), *map(ns_text, latencies))
    stdout.print(table)
    client = driven.client
    per_transaction = (client.user_s + client.system_s) / max(1, driven.transactions)
    if workload.headline == "NOPM":
        rates = f"{count_text(driven.nopm)} NOPM, {count_text(driven.tpm_total)} tpmTotal"
        label = " (TPC-C-like, not a TPC result)"
    else:
        rates, label = f"{count_text(driven.tps)} tps", ""
    stdout.print(f"{rates} over {driven.window_s:.1f} s{label}")
    stdout.print(
        f"{driven.round_trips_per_transaction:.2f} round trips a transaction,"
        f" client {ns_text(per_transaction * 1e9)} of CPU a transaction,"
        f" {client.share_of_host:.1%} of the host; seed {workload.seed}"
    )


def _print_statements(driven: Driven) -> None:
    columns = ("kind", "statement", "count", "p50", "p95", "p99", "max")
    table = Table(*columns, box=None, pad_edge=False)
    for kind in driven.kinds:
        for one in kind.statements:
            latencies = (one.ns[name] for name in ("p50", "p95", "p99", "max"))
            table.add_row(kind.kind, one.name, count_text(one.count), *map(ns_text, latencies))
    stdout.print(table)


def _client_text(
    driven: Driven, workload: Workload, idle_share: float | None, connection: Connection
) -> str:
    ceiling = fitting(
        read_ceilings(home()), this_machine(), workload.kind, workload.face, workload.connections
    )
    load = load_of(
        driven.client,
        host_idle_share=idle_share,
        server_on_host=connection.is_local,
        transactions_per_s=driven.transactions / driven.window_s,
        ceiling_per_s=None if ceiling is None else ceiling_per_s(ceiling, driven.client.threads),
    )
    share = ceiling_share(load)
    reached = "" if share is None else f"; {share:.0%} of the driver's ceiling on this machine"
    return client_limit(load).fact + reached
