"""`pgdyno bench`: drives a loaded database without a plan."""

from __future__ import annotations

from collections.abc import Sequence

from rich.live import Live
from rich.table import Table
from rich.text import Text

from pgdyno import api
from pgdyno.cli import bench_options as options
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.database_option import ConninfoOption, database
from pgdyno.model.units import at_least_text, count_text, ns_text

NOT_MEASURED = "–"
_WIDE = 10_000  # columns: more than any table has
_TIMES = ("p50", "p95", "p99", "max")
_ASKED, _WINDOW = defaults(api.Asked), defaults(api.bench)


def bench(
    workload: options.WorkloadArgument,
    file: options.FileArgument = None,
    conninfo: ConninfoOption = "",
    connections: options.Connections = _ASKED["connections"],
    terminals: options.Terminals = None,
    threads: options.Threads = None,
    warmup: options.Warmup = _WINDOW["warmup"],
    seconds: options.Seconds = _WINDOW["seconds"],
    engine: options.EngineOption = _ASKED["engine"],
    bindir: options.BindirOption = None,
    face: options.FaceOption = _ASKED["face"],
    isolation: options.Isolation = _ASKED["isolation"],
    seed: options.Seed = None,
    databases: options.Databases = _ASKED["databases"],
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
            on_event=lambda state: live.update(Text(api.driving_text(state))),
        )  # fmt: skip
    if as_json:
        stdout.print_json(benched.to_json())
    else:
        _print(benched)
        if statements:
            _print_statements(benched.driven)
        stdout.print(benched.client)
    for error in benched.driven.errors:
        stderr.print(f"{error.count} × {error.sqlstate}: {error.example}")
    benched.require()


def _print(benched: api.Benched) -> None:
    rows = []
    for kind in benched.driven.kinds:
        counts = kind.window
        numbers = (counts.succeeded, counts.rolled_back, counts.failed, counts.retries)
        times = _latencies(kind.response_ns) if counts.timed else [NOT_MEASURED] * 4
        rows.append((kind.kind, *map(count_text, numbers), *times))
    heads = ("kind", "committed", "rolled back", "failed", "retries")
    _print_table(heads, rows, names=1)
    for warning in benched.warnings:
        stdout.print(warning, style="yellow", highlight=False)
    for sentence in benched.sentences:
        stdout.print(sentence, soft_wrap=True)


def _print_statements(driven: api.Driven) -> None:
    if driven.pgbench is not None:
        means = Table("kind", "command", "mean", "failures", "retries", box=None, pad_edge=False)
        for statement in driven.pgbench.statements:
            counts = map(count_text, (statement.failures, statement.retries))
            means.add_row(statement.kind, Text(statement.text), ns_text(statement.mean_ns), *counts)
        stdout.print(means)
        return
    rows = []
    for kind in driven.kinds:
        for one in kind.statements:
            times = _latencies(one.ns) if one.count else [NOT_MEASURED] * 4
            rows.append((kind.kind, one.name, count_text(one.count), *times))
    _print_table(("kind", "statement", "count"), rows, names=2)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int) -> None:
    """Counts beside times; below each other where a terminal has no room, so that no word breaks.

    Args:
        heads: Of the columns before the times.
        rows: All of their cells, the times last.
        names: How many columns say what a row is.
    """
    whole = [*heads, *_TIMES]
    times = [*range(names), *range(len(heads), len(whole))]
    tables = [_of_columns(whole, rows, list(range(len(whole))))]
    wide = stdout.options.update(max_width=_WIDE)
    if stdout.measure(tables[0], options=wide).maximum > stdout.width:
        tables = [_of_columns(whole, rows, one) for one in (list(range(len(heads))), times)]
    for table in tables:
        stdout.print(table)


def _of_columns(heads: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> Table:
    table = Table(*(heads[one] for one in shown), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(row[one] for one in shown))
    return table


def _latencies(ns: dict[str, int]) -> list[str]:
    below = ns.get("exact_below")
    return [at_least_text(ns[name], below) for name in _TIMES]
