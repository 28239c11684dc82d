r"""Predicted against measured: synchronous commits a second of pgbench's TPC-B.

    python benches/commit_rate.py /var/lib/pgdyno --rounds 5 --seconds 10 --out rate.json

Method. A cluster of our own on the path, initdb's settings but for memory and checkpoints. A
round visits every number of clients, in an order that rotates:

* pgbench with synchronous_commit=off: what a transaction takes besides its flush. All CPUs it could
  use count as used, so n clients on c CPUs give min(n, c) / rate. WAL bytes come from the same run.
* fio's commits, before and after the next step, as `pgdyno storage` measures them: storage drifts.
* pgbench with synchronous_commit=on: the measured rate.

The prediction (`pgdyno.stats.group_commit`) knows the first two, and nothing of the third. A second
one, of the rules alone, takes the mean time of a flush from PostgreSQL 18's own pg_stat_io of the
third: where the first is wrong and this one right, the storage behaved otherwise under pgbench than
under fio. Ratios are measured / predicted, one for each round, with their interval.

Limits. Client and server share the machine. A checkpoint in a window is not predicted; none is due
within an hour. Rows of branches are locked through the flush: clients wait for each other where the
scale is not much larger than their number, and that is not predicted either.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from measure import Command, Failure, Spread, exit_code, table, write_json

from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Target
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.probe import fio
from pgdyno.probe.folder import accepts_direct, own_folder
from pgdyno.shell import postgres_user
from pgdyno.stage.binaries import Binaries, find_binaries
from pgdyno.stage.cluster import Cluster, initdb
from pgdyno.stage.home import home, owned_folder
from pgdyno.stats.ceiling import typical
from pgdyno.stats.group_commit import Flush, Transaction, commit_rate_per_s

SETTINGS = {
    "shared_buffers": "4GB", "max_wal_size": "32GB", "min_wal_size": "2GB",
    "checkpoint_timeout": "1h", "max_connections": "200", "track_wal_io_timing": "on",
}  # fmt: skip
STATEMENTS = 7  # of a TPC-B transaction, BEGIN and END included
GOAL = 0.15
PROBE_S = 2
_TPS = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_DONE = re.compile(r"actually processed: (\d+)")


@dataclass(frozen=True, slots=True)
class Bench:
    """A running cluster with pgbench's tables."""

    cluster: Cluster
    binaries: Binaries
    folder: Path

    def pgbench(self, *args: str, synchronous: bool, wait_s: float) -> str:
        """Run pgbench to its end and return what it said."""
        connection = self.cluster.connection()
        state = "on" if synchronous else "off"
        environment = os.environ | {
            "PGHOST": connection.host, "PGPORT": str(connection.port), "PGUSER": connection.user,
            "PGDATABASE": connection.database, "PGOPTIONS": f"-c synchronous_commit={state}",
        }  # fmt: skip
        command = [str(self.binaries.program("pgbench")), *args]
        with Command(command, self.folder / "pgbench.log", environment) as run:
            if run.wait(wait_s) != 0:
                raise run.failure("failed or hung")
            return run.text()

    def wal_bytes(self) -> int:
        """Where WAL is."""
        return int(self._asked("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0])

    def flushes(self) -> tuple[int, float]:
        """Flushes of WAL by clients until now, and the ms they took, writes included."""
        number, ms = self._asked(
            "SELECT sum(fsyncs), sum(fsync_time + write_time) FROM pg_stat_io"
            " WHERE object = 'wal' AND context = 'normal' AND backend_type = 'client backend'"
        )
        return int(number), float(ms)

    def _asked(self, query: LiteralString) -> tuple[Any, ...]:
        with psycopg.connect(**self.cluster.connection().arguments()) as session:
            row = session.execute(query).fetchone()
        assert row is not None
        return row


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of clients in one round."""

    clients: int
    off_per_s: float
    wal_bytes: float  # of a transaction
    probed_us: float  # a flush of one page, before and after
    run_us: float  # the same, by the server
    predicted_per_s: float
    by_rules_per_s: float  # predicted from the server's own flushes
    measured_per_s: float
    commits_a_flush: float


@contextmanager
def bench(path: Path, scale: int, bindir: str | None) -> Iterator[Bench]:
    """A loaded cluster below the path; all of it is gone at the end."""
    user = postgres_user()
    target = Target("installed", bindir=bindir) if bindir else Target("embedded")
    binaries = find_binaries(target, user, home())
    with own_folder(path) as folder:
        folder.chmod(0o711)  # for the user that runs PostgreSQL
        data = owned_folder(folder / "cluster", user) / "data"
        initdb(binaries, data, user, ())
        cluster = Cluster(binaries, data, user, "socket")
        try:
            origin = Origin(OriginKind.TARGET, "the benchmark's")
            cluster.start([Setting(name, value, origin) for name, value in SETTINGS.items()])
            made = Bench(cluster, binaries, folder)
            made.pgbench("-i", "-q", "-s", str(scale), synchronous=False, wait_s=3600)
            yield made
        finally:
            cluster.close()


def drive(one: Bench, clients: int, seconds: int, *, synchronous: bool) -> tuple[float, int]:
    """One window; rate and number of transactions."""
    threads = min(clients, len(os.sched_getaffinity(0)))
    said = one.pgbench(
        "-n", "-M", "prepared", "-c", str(clients), "-j", str(threads), "-T", str(seconds),
        synchronous=synchronous, wait_s=seconds + 120,
    )  # fmt: skip
    rate, done = _TPS.search(said), _DONE.search(said)
    if rate is None or done is None:
        raise Failure(f"pgbench printed no rate: {said[-300:]!r}", "Run it by itself first.")
    return float(rate.group(1)), int(done.group(1))


def cell(one: Bench, ground: fio.Ground, clients: int, seconds: int) -> Cell:
    """Ask what is needed, predict, and measure."""
    before = one.wal_bytes()
    off_per_s, done = drive(one, clients, seconds, synchronous=False)
    wal_bytes = (one.wal_bytes() - before) / done
    first = fio.measure_alone(ground, PROBE_S, 1)
    flushes, ms = one.flushes()
    measured, done = drive(one, clients, seconds, synchronous=True)
    later, later_ms = one.flushes()
    last = fio.measure_alone(ground, PROBE_S, 1)
    cpus = len(os.sched_getaffinity(0))
    transaction = Transaction(1e9 * min(clients, cpus) / off_per_s, STATEMENTS, wal_bytes)
    run_ns = (later_ms - ms) / (later - flushes) * 1e6

    def rate(flush_ns: float) -> float:
        cpu_ns = min((first.cpu_ns + last.cpu_ns) / 2, flush_ns)
        flush = Flush(flush_ns, cpu_ns=cpu_ns, quantiles=first.flush_quantiles)
        return commit_rate_per_s(clients, flush, transaction, cpus)

    probed_ns = (first.ns + last.ns) / 2
    return Cell(
        clients, off_per_s, wal_bytes, probed_ns / 1e3, run_ns / 1e3, rate(probed_ns),
        rate(run_ns), measured, done / (later - flushes),
    )  # fmt: skip


def ratio_text(measured: Sequence[float], predicted: Sequence[float]) -> str:
    """Typical ratio with its interval, and whether the goal is met."""
    ratio = typical([a / b for a, b in zip(measured, predicted, strict=True)])
    met = "yes" if abs(ratio.centre - 1) <= GOAL else "no"
    if ratio.low is None:
        return f"{ratio.centre:.3f}, {met}"
    return f"{ratio.centre:.3f} ({ratio.low:.3f} to {ratio.high:.3f}), {met}"


def shown(cells: Sequence[Cell]) -> str:
    """A line for each number of clients, and whether the goal is met."""
    columns = {
        "off, 1/s": ("off_per_s", 0), "WAL bytes": ("wal_bytes", 0),
        "flush by fio, us": ("probed_us", 1), "by the server, us": ("run_us", 1),
        "commits a flush": ("commits_a_flush", 2), "predicted, 1/s": ("predicted_per_s", 0),
        "measured, 1/s": ("measured_per_s", 0),
    }  # fmt: skip
    rows = []
    for clients in sorted({cell.clients for cell in cells}):
        same = [cell for cell in cells if cell.clients == clients]
        measured = [cell.measured_per_s for cell in same]
        rows.append(
            (
                str(clients),
                *(
                    Spread.of([getattr(cell, name) for cell in same]).text(digits)
                    for name, digits in columns.values()
                ),
                ratio_text(measured, [cell.predicted_per_s for cell in same]),
                ratio_text(measured, [cell.by_rules_per_s for cell in same]),
            )
        )
    heads = ("clients", *columns, f"measured / predicted, within {GOAL:.0%}", "/ by rules alone")
    n = len([cell for cell in cells if cell.clients == cells[0].clients])
    return f"{table(heads, rows)}\n\nn = {n}; ratios with 95% intervals"


def measure(options: argparse.Namespace) -> None:
    """All rounds; what is finished is kept in the file of --out."""
    cells: list[Cell] = []
    with bench(options.path, options.scale, options.bindir) as one:
        if one.binaries.version_num < 180000:
            raise Failure(f"{one.binaries.version} has no pg_stat_io of WAL", "Take 18 or later.")
        direct = accepts_direct(one.folder)
        ground = fio.Ground(fio.find_fio(), one.folder, fio.WAL_BYTES, direct)
        fio.write_files(ground)
        drive(one, 8, options.warmup, synchronous=False)
        os.sync()  # what the load left in the page cache must not meet the windows
        for number in range(options.rounds):
            by = number % len(options.clients)
            for clients in [*options.clients[by:], *options.clients[:by]]:
                cells.append(cell(one, ground, clients, options.seconds))
                print(f"round {number + 1} of {options.rounds}: {cells[-1]}", flush=True)
            if options.out:
                document = {
                    "ended_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "options": {key: str(value) for key, value in vars(options).items()},
                    "version": one.binaries.version,
                    "cells": [asdict(each) for each in cells],
                }
                write_json(options.out, document)
    print(shown(cells))


def compare(options: argparse.Namespace) -> None:
    """As `measure`, with the package's errors said as this folder's."""
    try:
        measure(options)
    except PgdynoError as error:
        raise Failure(error.fact, error.hint or "") from error


def main() -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--scale", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=30)
    parser.add_argument("--bindir")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    return exit_code(lambda: compare(options))


if __name__ == "__main__":
    sys.exit(main())
