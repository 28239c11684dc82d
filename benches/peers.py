r"""Interleaved comparison of drivers against one server, measured from outside of them.

    python benches/peers.py --conninfo "host=127.0.0.1 port=5432 user=postgres" \
        --driver 'a=a-tool --db {database} -n {connections} -t {seconds}' --database a=tpcc_a \
        --driver 'b=...' --database b=tpcc_b --rounds 3 --out peers.json

Method. A round runs every driver once; the order rotates. Before each run: the command of --before
(for example one that restores the data), then CHECKPOINT. The warm-up begins when the first order
has been committed, so neither connecting nor preparing counts. A command is told {seconds}, which
is {warmup} + {rest}: what it has to drive, with 5 s to spare after the window. Over the window:

* NOPM: growth of sum(d_next_o_id) per minute, that is New-Orders which were committed. A database
  without districts (pgbench's) has none: the warm-up begins when the server's commits grow then.
* tpmTotal: growth of the server's xact_commit + xact_rollback of that database per minute, divided
  by --commits-per-transaction where a tool makes the server count more than its transactions
  (go-tpc: 2, as it sends an empty query before each, and the server counts that as a commit).
  Backends report these counts once a second: half a second of error at each end of the window.
  --own gives a regular expression that finds the tool's own tpm in its output, shown beside.
* client CPU: user and system time of the command's process tree; server CPU: the same of the
  server's first process and all its children, background processes included.
* WAL: growth of the insert position of the whole server.
* IPIs: interrupts of this machine's CPUs by one another. Where sessions are woken on the CPU that
  wakes them there are few, and a round trip costs both sides less: the scheduler's choice, which
  lasts for seconds. So a further table splits the runs by it.
* others: CPU time of this machine that neither took, as a share of all cores.

Afterwards the driver may finish (--drain); then it is stopped. Ratios are taken within a round, of
the first driver named to each other one; the extremes of n independent rounds enclose the median
ratio with probability 1 - 2^(1-n).

Limits. All run on one machine: on few cores a driver's CPU is taken from the server, which is part
of the result. Without --before the databases grow, a faster driver's faster. Foreign keys, indexes
and what a transaction does are the tools' own; a ratio is not a verdict about equal work. A JVM
wants at least 15 s of warm-up. Nothing else may run meanwhile, not even at low priority.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from measure import (
    Command,
    Failure,
    Server,
    cpu_s,
    exit_code,
    filled,
    host_busy_s,
    ipis,
    named,
    postmaster,
    rotated,
    surroundings,
    until,
    write_json,
)
from peers_table import Driver, Run, by_placement, markdown

STARTING_COMMITS = 1000  # connecting, preparing and our own questions commit less often
START_S = 120.0  # the first order must be committed by then
SLACK_S = 5.0  # a driver is told to run so much longer than warm-up and window


@dataclass(frozen=True, slots=True)
class Protocol:
    """How each run is measured."""

    connections: int
    warmup_s: float
    window_s: float
    drain_s: float
    before: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment."""

    at_s: float
    orders: int
    transactions: int
    checkpoints: int
    wal_bytes: int
    server_cpu_s: float
    client_cpu_s: float
    host_busy_s: float
    ipis: float


class Counters:
    """Reads the counters of one run over its own session."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._server = postmaster(connection)
        found = connection.execute(
            "select coalesce(to_regclass('district'), to_regclass('bmsql_district'))"
        ).fetchone()
        self.tpcc = found is not None and found[0] is not None
        self._orders = (
            f"select sum(d_next_o_id)::bigint from {found[0]}"  # noqa: S608, a regclass
            if found is not None and self.tpcc
            else "select 0"
        )
        self._checkpoints = (
            "select num_timed + num_requested from pg_stat_checkpointer"
            if connection.info.server_version >= 170000
            else "select checkpoints_timed + checkpoints_req from pg_stat_bgwriter"
        )

    def _one(self, query: str) -> int:
        row = self._connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def orders(self) -> int:
        """The sum of all next order numbers."""
        return self._one(self._orders)

    def transactions(self) -> int:
        """Commits and rollbacks of the database, as far as backends have reported them."""
        return self._one(
            "select xact_commit + xact_rollback from pg_stat_database"
            " where datname = current_database()"
        )

    def work(self) -> int:
        """What grows as soon as a driver works: orders, or more commits than a start takes."""
        return self.orders() if self.tpcc else self.transactions() // STARTING_COMMITS

    def sessions(self) -> int:
        """How many other clients the database has."""
        query = "select count(*) from pg_stat_activity where datname = current_database()"
        return self._one(query + " and backend_type = 'client backend'") - 1

    def read(self, command: Command) -> Reading:
        """All counters, the dear ones first."""
        server_cpu_s, client_cpu_s = cpu_s(self._server), command.cpu_s()
        return Reading(
            at_s=time.monotonic(),
            orders=self.orders(),
            transactions=self.transactions(),
            checkpoints=self._one(self._checkpoints),
            wal_bytes=self._one("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"),
            server_cpu_s=server_cpu_s,
            client_cpu_s=client_cpu_s,
            host_busy_s=host_busy_s(),
            ipis=ipis(),
        )


def own_tpm(driver: Driver, output: str) -> float | None:
    """What the tool says of itself; the last match counts."""
    found = re.findall(driver.own, output) if driver.own else []
    return float(str(found[-1]).replace(",", "")) if found else None


def watch(command: Command, counters: Counters, protocol: Protocol) -> tuple[Reading, Reading]:
    """Wait for the first order, warm up, measure; the readings at both ends of the window.

    Raises:
        Failure: The driver did not start to drive, or ended before the window did.
    """
    before = counters.work()
    until(lambda: counters.work() > before or command.code() is not None, START_S)
    if command.code() is not None:
        raise command.failure("ended before its warm-up")
    if counters.work() == before:
        raise command.failure(f"did no work within {START_S:.0f} s")
    if command.wait(protocol.warmup_s) is not None:
        raise command.failure("ended in the warm-up")
    first = counters.read(command)
    if command.wait(protocol.window_s) is not None:
        raise command.failure("ended in the window")
    last = counters.read(command)
    return first, last


def result(driver: Driver, first: Reading, last: Reading, *, tpcc: bool) -> dict[str, Any]:
    """Figures of a window.

    Raises:
        Failure: Nothing was done in it.
    """
    window_s = last.at_s - first.at_s
    transactions = (last.transactions - first.transactions) / driver.commits_per_transaction
    orders = last.orders - first.orders
    if transactions <= 0 or (tpcc and orders <= 0):
        raise Failure(
            f"driver {driver.name} made {orders} orders, {transactions:.0f} transactions"
            f" in {window_s:.1f} s",
            "Look for errors in its output, or take a longer window.",
        )
    client_s = last.client_cpu_s - first.client_cpu_s
    server_s = last.server_cpu_s - first.server_cpu_s
    busy_s = last.host_busy_s - first.host_busy_s
    return {
        "window_s": window_s,
        "nopm": orders * 60 / window_s if tpcc else None,
        "tpm_total": transactions * 60 / window_s,
        "client_cpu_s_per_transaction": client_s / transactions,
        "server_cpu_s_per_transaction": server_s / transactions,
        "wal_bytes_per_transaction": (last.wal_bytes - first.wal_bytes) / transactions,
        "ipis_per_transaction": (last.ipis - first.ipis) / transactions,
        "checkpoints": last.checkpoints - first.checkpoints,
        "other_cpu_share": (busy_s - client_s - server_s) / (window_s * (psutil.cpu_count() or 1)),
    }


def prepare(server: Server, driver: Driver, protocol: Protocol, folder: Path) -> None:
    """Run the command of --before, if any."""
    if protocol.before is None:
        return
    arguments = filled(protocol.before, server.places(driver.database))
    with Command(arguments, folder / "before.log", server.environment()) as command:
        if command.wait(3600) != 0:
            raise command.failure("the command of --before failed")


def run(
    server: Server, driver: Driver, protocol: Protocol, number: int, position: int, folder: Path
) -> Run:
    """Measure one driver once."""
    prepare(server, driver, protocol, folder)
    places = server.places(driver.database) | {
        "connections": str(protocol.connections),
        "seconds": f"{protocol.warmup_s + protocol.window_s + SLACK_S:.0f}",
        "warmup": f"{protocol.warmup_s:.0f}",
        "rest": f"{protocol.window_s + SLACK_S:.0f}",
    }
    output = folder / f"{driver.name}.{number}.log"
    with server.connect(driver.database) as connection:
        counters = Counters(connection)
        if counters.sessions() > 0:
            raise Failure(
                f"database {driver.database} has {counters.sessions()} other sessions",
                "Close them: they would be measured too.",
            )
        connection.execute("checkpoint")
        with Command(filled(driver.template, places), output, server.environment()) as command:
            first, last = watch(command, counters, protocol)
            if command.wait(protocol.drain_s) not in (None, 0):
                raise command.failure("failed after the window")
        if not until(lambda: counters.sessions() == 0, 60):
            raise Failure(
                f"sessions of driver {driver.name} outlive it by 60 s",
                "End them before the next run.",
            )
    return Run(
        driver=driver.name,
        round=number,
        position=position,
        command=shlex.join(command.arguments),
        own_tpm=own_tpm(driver, command.text()),
        exit_code=command.code(),
        **result(driver, first, last, tpcc=counters.tpcc),
    )


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("--conninfo", required=True, help="of the server; its database name is not used")
    add(
        "--driver",
        action="append",
        required=True,
        metavar="NAME=COMMAND",
        help="placeholders:"
        " {connections} {seconds} {warmup} {rest} {conninfo} {host} {port} {user} {database}",
    )
    add("--database", action="append", required=True, metavar="NAME=DATABASE")
    add("--commits-per-transaction", action="append", default=[], metavar="NAME=NUMBER")
    add("--own", action="append", default=[], metavar="NAME=REGEX", help="group 1: its own tpm")
    add("--before", metavar="COMMAND", help="run before each run, for example to restore the data")
    add("--connections", type=int, default=8)
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=30, help="length of the window")
    add("--warmup", type=float, default=15, help="seconds after the first order")
    add("--drain", type=float, default=15, help="seconds a driver may take to end by itself")
    add("--out", type=Path, required=True, help="JSON file, written after each run")
    return parser.parse_args(given)


def drivers_of(options: argparse.Namespace) -> list[Driver]:
    """Put the options of each driver together.

    Raises:
        Failure: An option names a driver that there is not, or a driver has no database.
    """
    templates = named(options.driver, "--driver")
    by_option = {
        option: named(getattr(options, option.replace("-", "_")), f"--{option}")
        for option in ("database", "commits-per-transaction", "own")
    }
    for option, values in by_option.items():
        for name in values.keys() - templates.keys():
            raise Failure(f"--{option} names {name}", f"Drivers: {', '.join(templates)}.")
    for name in templates.keys() - by_option["database"].keys():
        raise Failure(f"driver {name} has no database", f"Add --database {name}=....")
    try:
        per = {n: float(v) for n, v in by_option["commits-per-transaction"].items()}
        for regex in by_option["own"].values():
            if re.compile(regex).groups != 1:
                raise ValueError(f"{regex!r} does not have one group")
    except (ValueError, re.error) as error:
        raise Failure(f"an option cannot be read: {error}", "See --help.") from error
    return [
        Driver(n, t, by_option["database"][n], per.get(n, 1.0), by_option["own"].get(n))
        for n, t in templates.items()
    ]


def compare(options: argparse.Namespace) -> None:
    """Run all rounds, write the file after each run, print the tables."""
    if min(options.connections, options.rounds, options.seconds) <= 0:
        raise Failure("connections, rounds or seconds is not positive", "Give at least 1.")
    server, drivers = Server.parse(options.conninfo), drivers_of(options)
    protocol = Protocol(
        options.connections, options.warmup, options.seconds, options.drain, options.before
    )
    document: dict[str, Any] = {
        **surroundings(server, drivers[0].database),
        "protocol": asdict(protocol),
        "drivers": [asdict(driver) for driver in drivers],
    }
    by_name: Mapping[str, Driver] = {driver.name: driver for driver in drivers}
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for position, name in enumerate(rotated(list(by_name), number)):
                done = run(server, by_name[name], protocol, number, position, Path(folder))
                runs.append(done)
                write_json(options.out, {**document, "runs": [asdict(one) for one in runs]})
                print(
                    f"round {number + 1}/{options.rounds} {name}: {done.tpm_total:,.0f} tpm,"
                    f" client {done.client_cpu_s_per_transaction * 1e6:.0f} us/txn,"
                    f" others {done.other_cpu_share:.1%} of CPU",
                    file=sys.stderr,
                )
    print(markdown(runs, drivers), by_placement(runs, drivers), sep="\n\n")


def main(given: Sequence[str] | None = None) -> int:
    """Compare; finished runs are kept in the file of --out."""
    options = arguments(given)
    return exit_code(lambda: compare(options))


if __name__ == "__main__":
    sys.exit(main())
