"""`pgdyno bench`: drives a loaded database without a plan."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from pgdyno import api
from pgdyno.cli import bench_options as options
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.database_option import ConninfoOption, database
from pgdyno.cli.live_view import rates_text
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Workload
from pgdyno.model.progress import DriveProgress
from pgdyno.model.run import PgbenchSummary, Series
from pgdyno.model.units import at_least_text, count_text, ns_text
from pgdyno.model.wording import plural
from pgdyno.stats.finding import Finding
from pgdyno.stats.window_end import answer_of, stuck_reason, window_end

NOT_MEASURED = "–"


def bench(
    workload: options.WorkloadArgument,
    file: options.FileArgument = None,
    conninfo: ConninfoOption = "",
    connections: options.Connections = 8,
    terminals: options.Terminals = None,
    threads: options.Threads = None,
    warmup: options.Warmup = 5.0,
    seconds: options.Seconds = 30.0,
    engine: options.EngineOption = "pgdyno",
    bindir: options.BindirOption = None,
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

    Example: pgdyno bench tpcc -d 'dbname=tpcc' -c 8 --face pipeline
    """
    asked = api.Asked(
        kind=workload, file=file, connections=connections, terminals=terminals, threads=threads,
        face=face, isolation=isolation, seed=seed, databases=databases, rate=rate,
        poisson=poisson, requests=requests, mix=options.weights(mix), rules=rules,
        delivery=delivery, home=home, keying=keying, think=think, files=tuple(files or ()),
        variables=options.variables(variables or ()), scale=scale, engine=engine, bindir=bindir,
        spelled=options.spelled,
    )  # fmt: skip
    asked.refuse_strangers()
    connection = database(conninfo)
    with Live(Text("connecting"), console=stderr, transient=True, refresh_per_second=4) as live:
        benched = api.bench(
            asked, connection, seconds=seconds, warmup=warmup,
            on_event=lambda state: live.update(Text(_progress(state))),
        )  # fmt: skip
    driven = benched.driven
    if as_json:
        stdout.print_json(json.dumps(_as_json(driven, benched.workload)))
    else:
        _print(driven, benched.workload)
        if statements:
            _print_statements(driven)
        stdout.print(benched.client)
    for error in driven.errors:
        stderr.print(f"{error.count} × {error.sqlstate}: {error.example}")
    if driven.error:
        raise DriveError(driven.error)


def _progress(state: DriveProgress) -> str:
    return f"{state.phase}: {rates_text(state.last_second)} now, {state.phase_left_s:.0f} s left"


def _as_json(driven: api.Driven, workload: Workload) -> dict[str, Any]:
    nopm = driven.nopm if workload.headline == "NOPM" else None
    figures = {"headline": workload.headline, "nopm": nopm, "tpm_total": driven.tpm_total,
               "tps": driven.tps}  # fmt: skip
    seconds = [_series_json(one) for one in driven.series]
    rest = asdict(replace(driven, series=()))
    return {**figures, "seed": workload.seed, **rest, "series": seconds}


def _series_json(series: Series) -> dict[str, Any]:
    """A column, each value with the start of its second; see docs/guides/load-and-drive.md."""
    return {
        "name": series.name, "unit": series.unit, "kind": series.kind,
        "unix_ns": series.unix_ns.tolist(), "values": series.values.tolist(),
    }  # fmt: skip


def _print(driven: api.Driven, workload: Workload) -> None:
    columns = ("kind", "committed", "rolled back", "failed", "retries", "p50", "p95", "p99", "max")
    table = Table(*columns, box=None, pad_edge=False)
    for kind in driven.kinds:
        counts = kind.window
        retries = counts.retries_40001 + counts.retries_40p01
        numbers = (counts.succeeded, counts.rolled_back, counts.failed, retries)
        times = _latencies(kind.response_ns) if counts.timed else [NOT_MEASURED] * 4
        table.add_row(kind.kind, *map(count_text, numbers), *times)
    stdout.print(table)
    _print_window_end(driven)
    stdout.print(rates_line(driven, workload))
    if driven.transactions == 0:
        stdout.print(f"seed {workload.seed}")
    else:
        stdout.print(_cost_line(driven, workload))
    if driven.pgbench is not None:
        stdout.print(pgbench_text(driven.pgbench), soft_wrap=True)


def rates_line(driven: api.Driven, workload: Workload) -> str:
    """What was reached, or that the window says nothing of it."""
    over = f"{driven.window_s:.1f} s"
    if driven.transactions == 0:
        return (
            f"No transaction ended in the window of {over}, so no rate is known.{_wait(workload)}"
        )
    if workload.headline != "NOPM":
        return f"{count_text(driven.tps)} tps over {over}"
    total = f"{count_text(driven.tpm_total)} tpmTotal over {over}"
    label = " (TPC-C-like, not a TPC result)"
    if workload.tpcc is not None and not workload.tpcc.mix.get("new_order"):
        return f"{total}{label}; the mix has no New-Orders"
    if driven.nopm == 0:
        none = "; no New-Order was committed in it, so NOPM is not known"
        return f"{total}{label}{none}.{_wait(workload)}"
    return f"{count_text(driven.nopm)} NOPM, {total}{label}"


def _wait(workload: Workload) -> str:
    """How to measure more where terminals mostly wait."""
    tpcc = workload.tpcc
    if tpcc is None or not (tpcc.keying_multiplier or tpcc.think_multiplier):
        return " A longer window (--seconds) shows more."
    return (
        " With the text's keying and think times (factor 1) a terminal asks about three times a"
        " minute:"
        " take a longer window (--seconds), or smaller factors (--keying, --think)."
    )


def _cost_line(driven: api.Driven, workload: Workload) -> str:
    client, transactions = driven.client, driven.transactions
    trips = driven.round_trips_per_transaction
    cpu_ns = (client.user_s + client.system_s) / transactions * 1e9
    sleeps = client.voluntary_switches / transactions
    return (
        ("" if trips is None else f"{trips:.2f} round trips a transaction, ")
        + f"client {ns_text(cpu_ns)} of CPU and {sleeps:.2f} sleeps a transaction,"
        f" {client.share_of_host:.1%} of the host; seed {workload.seed}"
    )


def _print_statements(driven: api.Driven) -> None:
    if driven.pgbench is not None:
        means = Table("kind", "command", "mean", "failures", "retries", box=None, pad_edge=False)
        for statement in driven.pgbench.statements:
            counts = map(count_text, (statement.failures, statement.retries))
            means.add_row(
                statement.kind, Text(statement.text), ns_text(statement.mean_s * 1e9), *counts
            )
        stdout.print(means)
        return
    columns = ("kind", "statement", "count", "p50", "p95", "p99", "max")
    table = Table(*columns, box=None, pad_edge=False)
    for kind in driven.kinds:
        for one in kind.statements:
            times = _latencies(one.ns) if one.count else [NOT_MEASURED] * 4
            table.add_row(kind.kind, one.name, count_text(one.count), *times)
    stdout.print(table)


def _latencies(ns: dict[str, int]) -> list[str]:
    below = ns.get("exact_below")
    return [at_least_text(ns[name], below) for name in ("p50", "p95", "p99", "max")]


def _print_window_end(driven: api.Driven) -> None:
    """Requests without an answer or a time, in numbers; nothing where all have them."""
    end = window_end([kind.window for kind in driven.kinds], driven.given_up_s, driven.untold)
    answer = answer_of(end)
    if isinstance(answer, Finding):
        stdout.print(answer.fact, style="yellow", highlight=False)
    if stuck := stuck_reason(end):
        stdout.print(stuck, style="yellow", highlight=False)


def pgbench_text(said: PgbenchSummary) -> str:
    """The summary of pgbench itself, in a line."""
    parts = [
        plural(said.transactions, "transaction", thousands=True),
        f"{count_text(said.tps)} tps",
    ]
    for what, seconds in (
        ("latency average", said.latency_mean_s),
        ("stddev", said.latency_sd_s),
        ("initial connection time", said.connect_s),
    ):
        if seconds is not None:
            parts.append(f"{what} {ns_text(seconds * 1e9)}")
    return f"{said.version} itself, warm-up included: {', '.join(parts)}"
