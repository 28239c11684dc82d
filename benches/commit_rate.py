r"""Predicted against measured: synchronous commits a second of pgbench's TPC-B.

    python benches/commit_rate.py /var/lib/pgdyno --rounds 5 --seconds 10 --out rate.json

Method. A cluster of our own on the path, initdb's settings but for memory and checkpoints. A
round visits every number of clients, in an order that rotates. Each runs with synchronous_commit
off and on; rate, WAL and busy CPUs of the host are taken down. Predicted is the rate with it on
(`pgdyno.stats.group_commit`), from what is measured without:

* a flush is fio's, before and after each window, at once and after rests of several lengths, as
  `pgdyno storage` measures it;
* CPU time of a transaction is that of the same clients with synchronous_commit off, at the rate to
  be predicted: who is not driven as fast as can be finds CPUs asleep, caches cold and fewer events
  to handle at once, and takes more. pgbench is run at full speed and at shares of it, and the rate
  is sought at which both agree. One client also waits for its server: its statements' time counts;
* to commit costs CPU besides that of a flush: what one client that does nothing but commit a
  message in WAL takes more with synchronous_commit on than off.

`--slower-us` adds a sleep to every fdatasync, of fio and the server alike (a library of a few
lines, preloaded): storage that is farther away, as cloud disks are, on a machine that has none.

Ratios are measured / predicted, one for each round, with their interval.

Limits. Client and server share the machine. A checkpoint in a window is not predicted; none is due
within an hour.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from measure import Command, Failure, Spread, host_busy_s, table, write_json
from package import package_exit_code

from pgdyno.model.plan import Target
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.probe import fio
from pgdyno.probe.folder import accepts_direct, own_folder
from pgdyno.shell import postgres_user
from pgdyno.stats.ceiling import typical
from pgdyno.stats.group_commit import Flush, Transaction, at, commit_rate_per_s
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb

SETTINGS = {
    "shared_buffers": "4GB", "max_wal_size": "32GB", "min_wal_size": "2GB",
    "checkpoint_timeout": "1h", "max_connections": "200", "track_wal_io_timing": "on",
}  # fmt: skip
STATEMENTS = 7  # of a TPC-B transaction, BEGIN and END included
BRANCHES = 5  # the one that locks a branch, one of as many as the scale
SHARES = (0.1, 0.35, 0.65)  # of the highest rate without waiting for flushes
RESTED_NS = 200_000  # of what is shown
STEPS = 8  # towards the rate at which transactions take as long as they do
GOAL = 0.15
PROBE_S = 1
_TPS = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_DONE = re.compile(r"actually processed: (\d+)")
_STATEMENT = re.compile(r"^ +([\d.]+) +\d+ +[A-Z]", re.MULTILINE)  # no command of pgbench
SLOWER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <time.h>
int fdatasync(int file) {
  int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  int result = flush(file), error = errno;
  struct timespec left = { 0, SLOWER_NS };
  while (nanosleep(&left, &left) == -1 && errno == EINTR) {}
  errno = error;
  return result;
}
"""


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
        return tuple(row)


@dataclass(frozen=True, slots=True)
class Driven:
    """One window of pgbench."""

    per_s: float
    transactions: int
    busy_ns: float  # of all CPUs of the host, for each transaction
    statements_ns: float  # of a transaction, as its client saw it


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of clients in one round."""

    clients: int
    off: tuple[Driven, ...]  # at the shares of the highest rate, then at that
    on: Driven
    wal_bytes: float  # of a transaction
    flush: Flush  # by fio, before and after
    server_ns: float  # of a flush, by the server itself; it may wait for a CPU
    commits_a_flush: float


@dataclass(frozen=True, slots=True)
class Round:
    """Every number of clients, and one that only commits."""

    cells: tuple[Cell, ...]
    commit_off: Driven
    commit_on: Driven

    def cell(self, clients: int) -> Cell:
        """That of so many clients."""
        return next(cell for cell in self.cells if cell.clients == clients)


def predict(one: Round, cell: Cell, scale: int) -> float:
    """The rate with synchronous commits."""
    cpus = len(os.sched_getaffinity(0))
    more_ns = one.commit_on.busy_ns - one.commit_off.busy_ns - cell.flush.cpu_ns
    per_s = cell.off[-1].per_s
    for _ in range(STEPS):
        transaction = Transaction(
            cpu_ns(cell, per_s) + max(0.0, more_ns), STATEMENTS, cell.wal_bytes,
            rows=scale, row_burst=BRANCHES,
        )  # fmt: skip
        found = commit_rate_per_s(cell.clients, cell.flush, transaction, cpus)
        per_s = (per_s + found) / 2
    return per_s


def cpu_ns(cell: Cell, per_s: float) -> float:
    """What a transaction takes at this rate, without its flush."""
    rates = sorted(cell.off, key=lambda each: each.per_s)
    busy_ns = at(tuple((each.per_s, each.busy_ns) for each in rates), per_s)
    if cell.clients > 1:
        return busy_ns
    return max(busy_ns, at(tuple((each.per_s, each.statements_ns) for each in rates), per_s))


@contextmanager
def bench(path: Path, scale: int, bindir: str | None) -> Iterator[Bench]:
    """A loaded cluster below the path; all of it is gone at the end."""
    user = postgres_user()
    target = Target("installed", bindir=bindir) if bindir else Target("embedded")
    binaries = find_binaries(target, user)
    with own_folder(path) as folder:
        data = folder / "data"
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


def drive(one: Bench, clients: int, seconds: int, *more: str, synchronous: bool) -> Driven:
    """One window."""
    threads = min(clients, len(os.sched_getaffinity(0)))
    busy_s = host_busy_s()
    said = one.pgbench(
        "-n", "-M", "prepared", "-c", str(clients), "-j", str(threads), "-T", str(seconds), "-r",
        *more, synchronous=synchronous, wait_s=seconds + 120,
    )  # fmt: skip
    busy_s = host_busy_s() - busy_s
    rate, done = _TPS.search(said), _DONE.search(said)
    if rate is None or done is None:
        raise Failure(f"pgbench printed no rate: {said[-300:]!r}", "Run it by itself first.")
    number = int(done.group(1))
    statements_ns = 1e6 * sum(float(ms) for ms in _STATEMENT.findall(said))
    return Driven(float(rate.group(1)), number, 1e9 * busy_s / number, statements_ns)


def measure_cell(one: Bench, ground: fio.Ground, clients: int, seconds: int) -> Cell:
    """Windows that do not wait for flushes, then one that does, with the storage asked around."""
    before = one.wal_bytes()
    full = drive(one, clients, seconds, synchronous=False)
    wal_bytes = (one.wal_bytes() - before) / full.transactions
    slower = [
        drive(one, clients, seconds, f"--rate={share * full.per_s:.0f}", synchronous=False)
        for share in SHARES
    ]
    first = measure_flush(ground)
    flushes, ms = one.flushes()
    on = drive(one, clients, seconds, synchronous=True)
    later, later_ms = one.flushes()
    last = measure_flush(ground)
    return Cell(
        clients, (*slower, full), on, wal_bytes, both(first, last),
        1e6 * (later_ms - ms) / (later - flushes), on.transactions / (later - flushes),
    )  # fmt: skip


def measure_flush(ground: fio.Ground) -> Flush:
    """Flushes of fio, at once and after pauses."""
    busy = fio.measure_alone(ground, PROBE_S, 1)
    return Flush.measured(busy, fio.measure_rested(ground, PROBE_S, 1))


def both(first: Flush, last: Flush) -> Flush:
    """The mean of two."""

    def mean(one: float, other: float) -> float:
        return (one + other) / 2

    pairs = zip(first.paused, last.paused, strict=True)
    paused = tuple((mean(a, c), mean(b, d)) for (a, b), (c, d) in pairs)
    return Flush(
        mean(first.ns, last.ns), paused, cpu_ns=mean(first.cpu_ns, last.cpu_ns),
        quantiles=first.quantiles,
    )  # fmt: skip


def measure_round(one: Bench, ground: fio.Ground, order: Sequence[int], seconds: int) -> Round:
    """Every number of clients, in this order, then one that only commits."""
    cells = tuple(measure_cell(one, ground, clients, seconds) for clients in order)
    script = one.folder / "commit.sql"
    script.write_text("SELECT pg_logical_emit_message(true, '', '');\n")
    off, on = (
        drive(one, 1, seconds, "-f", str(script), synchronous=each) for each in (False, True)
    )
    return Round(cells, off, on)


def ratio_text(measured: Sequence[float], predicted: Sequence[float]) -> str:
    """Typical ratio with its interval, and whether the goal is met."""
    ratio = typical([a / b for a, b in zip(measured, predicted, strict=True)])
    met = "yes" if abs(ratio.centre - 1) <= GOAL else "no"
    if ratio.low is None:
        return f"{ratio.centre:.3f}, {met}"
    return f"{ratio.centre:.3f} ({ratio.low:.3f} to {ratio.high:.3f}), {met}"


def shown(rounds: Sequence[Round], scale: int) -> str:
    """A line for each number of clients, and whether the goal is met."""
    rows = []
    for clients in sorted(cell.clients for cell in rounds[0].cells):
        cells = [each.cell(clients) for each in rounds]
        on = [cell.on.per_s for cell in cells]
        row = [
            str(clients),
            Spread.of([cell.off[-1].per_s for cell in cells]).text(0),
            Spread.of(on).text(0),
            Spread.of([cell.commits_a_flush for cell in cells]).text(2),
            Spread.of([cell.flush.ns / 1000 for cell in cells]).text(1),
            Spread.of([cell.flush.of(0, RESTED_NS) / 1000 for cell in cells]).text(1),
            Spread.of([cell.server_ns / 1000 for cell in cells]).text(1),
        ]
        row.append(ratio_text(on, [predict(each, each.cell(clients), scale) for each in rounds]))
        rows.append(row)
    heads = (
        "clients", "off, 1/s", "on, 1/s", "commits a flush", "flush by fio, us",
        "after 200 us of rest", "by the server, us", "measured / predicted",
    )  # fmt: skip
    n = len(rounds)
    return f"{table(heads, rows)}\n\nn = {n}; ratios with 95% intervals, within {GOAL:.0%} or not"


@contextmanager
def slower(microseconds: int) -> Iterator[None]:
    """Every fdatasync of programs that are started meanwhile takes longer by so much."""
    if not microseconds:
        yield
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # for the user that runs PostgreSQL
        (folder / "slower.c").write_text(SLOWER)
        library = folder / "slower.so"
        command = [
            "gcc", "-O2", "-shared", "-fPIC", f"-DSLOWER_NS={1000 * microseconds}L", "-o",
            str(library), str(folder / "slower.c"), "-ldl",
        ]  # fmt: skip
        with Command(command, folder / "gcc.log", os.environ) as run:
            if run.wait(60) != 0:
                raise run.failure("failed or hung")
        os.environ["LD_PRELOAD"] = str(library)
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"]


def measure(options: argparse.Namespace) -> None:
    """All rounds; what is finished is kept in the file of --out."""
    rounds: list[Round] = []
    if not 0 <= options.slower_us < 1_000_000:
        raise Failure(f"--slower-us is {options.slower_us}", "Take less than a second.")
    if 1 not in options.clients:
        raise Failure(f"--clients is {options.clients}", "The prediction needs one client, too.")
    with slower(options.slower_us), bench(options.path, options.scale, options.bindir) as one:
        if one.binaries.version_num < 180000:
            raise Failure(f"{one.binaries.version} has no pg_stat_io of WAL", "Take 18 or later.")
        direct = accepts_direct(one.folder)
        ground = fio.Ground(fio.find_fio(), one.folder, fio.WAL_BYTES, direct)
        fio.write_files(ground)
        drive(one, 8, options.warmup, synchronous=False)
        os.sync()  # what the load left in the page cache must not meet the windows
        for number in range(options.rounds):
            by = number % len(options.clients)
            order = [*options.clients[by:], *options.clients[:by]]
            rounds.append(measure_round(one, ground, order, options.seconds))
            print(f"round {number + 1} of {options.rounds}", flush=True)
            if options.out:
                document = {
                    "ended_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "options": {key: str(value) for key, value in vars(options).items()},
                    "version": one.binaries.version,
                    "rounds": [asdict(each) for each in rounds],
                }
                write_json(options.out, document)
    print(shown(rounds, options.scale))


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
    parser.add_argument("--slower-us", type=int, default=0)
    parser.add_argument("--bindir")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    return package_exit_code(lambda: measure(options))


if __name__ == "__main__":
    sys.exit(main())
