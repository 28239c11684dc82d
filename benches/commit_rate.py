r"""Predicted against measured: synchronous commits a second of pgbench's TPC-B.

    python benches/commit_rate.py /var/lib/pgdyno --rounds 5 --seconds 10 --out rate.json

Method. A cluster of our own on the path, initdb's settings but for memory and checkpoints. Each
round asks the storage first (pg_test_fsync and fio's commits, as `pgdyno storage` does), then
visits every number of clients, in an order that rotates:

* pgbench with synchronous_commit=off: what a transaction takes besides its flush. All CPUs it could
  use count as used, so n clients on c CPUs give min(n, c) / rate. WAL bytes come from the same run.
* pgbench with synchronous_commit=on: the measured rate.

The prediction of a round (`pgdyno.stats.group_commit`) knows the first and the storage, and nothing
of the second. Ratios are measured / predicted, one for each round, with their interval.

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

import psycopg
from measure import Command, Failure, Spread, exit_code, table, write_json

from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Target
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.probe import fio
from pgdyno.probe.folder import accepts_direct, own_folder
from pgdyno.probe.sync import measure_sync
from pgdyno.shell import postgres_user
from pgdyno.stage.binaries import Binaries, find_binaries
from pgdyno.stage.cluster import Cluster, initdb
from pgdyno.stage.home import home, owned_folder
from pgdyno.stats.ceiling import typical
from pgdyno.stats.group_commit import Flush, Transaction, commit_rate_per_s

SETTINGS = {
    "shared_buffers": "2GB", "max_wal_size": "32GB", "min_wal_size": "2GB",
    "checkpoint_timeout": "1h", "max_connections": "200",
}  # fmt: skip
STATEMENTS = 7  # of a TPC-B transaction, BEGIN and END included
GOAL = 0.15
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
        with psycopg.connect(**self.cluster.connection().arguments()) as session:
            row = session.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        return int(row[0])


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of clients in one round."""

    clients: int
    off_per_s: float
    wal_bytes: float  # of a transaction
    predicted_per_s: float
    measured_per_s: float

    @property
    def ratio(self) -> float:
        """Measured to predicted."""
        return self.measured_per_s / self.predicted_per_s


@dataclass(frozen=True, slots=True)
class Round:
    """The storage as it was, and every number of clients."""

    flush: Flush
    cells: tuple[Cell, ...]


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


def probe(one: Bench, ground: fio.Ground, seconds: int) -> Flush:
    """What the storage takes now."""
    rates = measure_sync(one.binaries.program("pg_test_fsync"), one.folder, seconds)
    ns = {rate.test: rate.ns for rate in rates if rate.method == "fdatasync" and rate.ns}
    commits = fio.measure_commits(ground, seconds, 1).alone
    first, both = ns["one-write"], ns["two-writes"]
    return Flush(first, max(0.0, both - first), min(commits.cpu_ns, first))


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


def cell(one: Bench, flush: Flush, clients: int, seconds: int) -> Cell:
    """Predict, then measure."""
    cpus = len(os.sched_getaffinity(0))
    before = one.wal_bytes()
    off_per_s, done = drive(one, clients, seconds, synchronous=False)
    wal_bytes = (one.wal_bytes() - before) / done
    transaction = Transaction(1e9 * min(clients, cpus) / off_per_s, STATEMENTS, wal_bytes)
    predicted = commit_rate_per_s(clients, flush, transaction, cpus)
    measured, _ = drive(one, clients, seconds, synchronous=True)
    return Cell(clients, off_per_s, wal_bytes, predicted, measured)


def shown(rounds: Sequence[Round]) -> str:
    """A line for each number of clients, and whether the goal is met."""
    rows = []
    for clients in sorted(cell.clients for cell in rounds[0].cells):
        cells = [cell for each in rounds for cell in each.cells if cell.clients == clients]
        ratio = typical([cell.ratio for cell in cells])
        interval = "-" if ratio.low is None else f"{ratio.low:.3f} to {ratio.high:.3f}"
        rows.append(
            (
                str(clients),
                *(
                    Spread.of([getattr(cell, name) for cell in cells]).text(0)
                    for name in ("off_per_s", "wal_bytes", "predicted_per_s", "measured_per_s")
                ),
                f"{ratio.centre:.3f}",
                interval,
                "yes" if abs(ratio.centre - 1) <= GOAL else "no",
            )
        )
    flushes = Spread.of([each.flush.ns / 1000 for each in rounds]).text(1)
    heads = ("clients", "off, 1/s", "WAL bytes", "predicted, 1/s", "measured, 1/s",
             "measured / predicted", "95% interval", f"within {GOAL:.0%}")  # fmt: skip
    return f"flush of one page, us: {flushes}; n = {len(rounds)}\n\n{table(heads, rows)}"


def measure(options: argparse.Namespace) -> None:
    """All rounds; what is finished is kept in the file of --out."""
    rounds: list[Round] = []
    with bench(options.path, options.scale, options.bindir) as one:
        ground = fio.Ground(
            fio.find_fio(), one.folder, 256 << 20, accepts_direct(one.folder)
        )  # fmt: skip
        fio.write_files(ground)
        drive(one, 8, options.warmup, synchronous=False)
        for number in range(options.rounds):
            flush = probe(one, ground, 1)
            by = number % len(options.clients)
            order = [*options.clients[by:], *options.clients[:by]]
            cells = tuple(cell(one, flush, clients, options.seconds) for clients in order)
            rounds.append(Round(flush, cells))
            print(f"round {number + 1} of {options.rounds}", *cells, sep="\n", flush=True)
            if options.out:
                document = {
                    "ended_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "options": {key: str(value) for key, value in vars(options).items()},
                    "version": one.binaries.version,
                    "rounds": [asdict(each) for each in rounds],
                }
                write_json(options.out, document)
    print(shown(rounds))


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
    parser.add_argument("--scale", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=30)
    parser.add_argument("--bindir")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    return exit_code(lambda: compare(options))


if __name__ == "__main__":
    sys.exit(main())
