r"""What does a network cost? The driver in a network namespace of its own, against the Unix socket.

    python benches/network.py --folder /var/lib/pgdyno --rounds 9 --seconds 10 --out network.json
    python benches/network.py --folder /dev/shm --rounds 2 --seconds 2 --scale 2    # does it work?

Method. A cluster of our own in the folder, with initdb's settings but for memory and checkpoints,
and with synchronous_commit off, so that no disk hides what is asked about (`--set` has others). It
listens on its Unix socket and on one end of a veth pair, whose other end is in a network namespace
with an address of its own. The same driver program drives a window from this host over the socket,
or from within the namespace over TCP: a fleet of one host each time. With `--loopback` it also
drives over TCP from this host, which tells TCP from the pair of cards.

A round has a window of every face and way; faces in random order, and the ways of a face side by
side, in random order. Ahead of each: CHECKPOINT. Ratios are taken within a round and face, way by
socket: the Hodges-Lehmann estimate over all rounds with its 95% interval.

* client CPU: of the driver's process; server CPU: of the first process of the server and all its
  children; machine CPU: of everything, the kernel's work for the network included, which is
  nobody's. The latter two are from before the driver connects until it has ended.

Limits. A veth pair is a network without wire or card: no interrupts, no time on the way, and both
hosts share their CPUs. A real network costs more. Needs root; nothing of it is left behind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
import psutil
import psycopg
from measure import (
    Failure,
    Server,
    Spread,
    cpu_s,
    host_busy_s,
    keep,
    named,
    surroundings,
    table,
)
from package import package_exit_code, require_complete, target_of

from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import loaded_workload
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.fleet import Fleet
from pgdyno.model.plan import Protocol
from pgdyno.model.settings import Origin, OriginKind, Rung, Setting
from pgdyno.model.workload import Face, Pgbench, Tpcc, Workload
from pgdyno.probe.folder import own_folder
from pgdyno.shell import postgres_user, run
from pgdyno.stats.interval import estimate
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import DATABASE, Cluster, initdb

SOCKET, LOOPBACK, NETWORK = "socket", "loopback", "network"
SETTINGS = {
    "shared_buffers": "1GB", "max_wal_size": "16GB", "checkpoint_timeout": "1h",
    "synchronous_commit": "off",
}  # fmt: skip
DRAIN_S = 10.0
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Link:
    """A veth pair into a namespace."""

    namespace: str
    here: str  # the server's address
    there: str  # the driver's


@dataclass(frozen=True, slots=True)
class Way:
    """How the driver reaches the server, and where it runs."""

    connection: Connection
    fleet: Fleet


@dataclass(frozen=True, slots=True)
class Window:
    """What one window showed."""

    face: str
    way: str
    round: int
    position: int
    per_s: float
    p50_ns: int  # of the most frequent kind
    p99_ns: int
    client_cpu_s: float  # these three for each transaction
    server_cpu_s: float
    machine_cpu_s: float
    round_trips: float
    failed: int


FIGURES = (
    ("per_s", "transactions/s", 0, 1.0),
    ("p50_ns", "p50, us", 0, 1e-3),
    ("p99_ns", "p99, us", 0, 1e-3),
    ("client_cpu_s", "client CPU us/txn", 1, 1e6),
    ("server_cpu_s", "server CPU us/txn", 1, 1e6),
    ("machine_cpu_s", "machine CPU us/txn", 1, 1e6),
)


@contextmanager
def linked() -> Iterator[Link]:
    """A network namespace with a card, whose other end is here; both are gone at the end.

    Raises:
        Failure: We are not root, or there is no `ip`.
    """
    if os.geteuid() != 0:
        raise Failure("a network namespace takes root", "Run it as root.")
    if shutil.which("ip") is None:
        raise Failure("program ip is not on PATH", "Install it: `apt-get install iproute2`.")
    number = os.getpid()
    name, ours, theirs = f"pgdyno-net-{number}", f"pgn{number}", f"pgn{number}i"
    # Addresses for measurements between networks (RFC 2544), four for each process of ours.
    net = f"198.18.{number // 64 % 256}"
    link = Link(name, f"{net}.{number % 64 * 4 + 1}", f"{net}.{number % 64 * 4 + 2}")
    with ExitStack() as stack:
        run(["ip", "netns", "add", name])
        stack.callback(run, ["ip", "netns", "del", name])
        run(["ip", "link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name])
        stack.callback(run, ["ip", "link", "del", ours])
        run(["ip", "addr", "add", f"{link.here}/30", "dev", ours])
        run(["ip", "link", "set", ours, "up"])
        run(["ip", "-n", name, "addr", "add", f"{link.there}/30", "dev", theirs])
        run(["ip", "-n", name, "link", "set", theirs, "up"])
        yield link


@contextmanager
def serving(asked: argparse.Namespace, link: Link) -> Iterator[tuple[Cluster, dict[str, Way]]]:
    """A loaded server, and the ways to it."""
    user = postgres_user()
    binaries = find_binaries(target_of(asked.bindir), user)
    values = {"listen_addresses": f"127.0.0.1,{link.here}", **SETTINGS}
    values |= {"max_connections": str(asked.connections + 20), **named(asked.set, "--set")}
    origin = Origin(OriginKind.TARGET, "the benchmark's")
    with own_folder(asked.folder) as folder:
        initdb(binaries, folder / "data", user, ())
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {link.there}/32 scram-sha-256\n")
        cluster = Cluster(binaries, folder / "data", user, "tcp")
        try:
            cluster.start([Setting(name, value, origin) for name, value in values.items()])
            over_socket = cluster.connection()
            with psycopg.connect(**over_socket.arguments(), autocommit=True) as session:
                session.execute(f"CREATE DATABASE {DATABASE}")
            over_socket, over_tcp = over_socket.to(DATABASE), cluster.measured_connection()
            load(over_socket, workload_of(asked, "statement"), How(connections=2))
            here = Fleet((f"local:{SOCKET}",))
            ways = {SOCKET: Way(over_socket, here)}
            if asked.loopback:
                ways[LOOPBACK] = Way(over_tcp, Fleet((f"local:{LOOPBACK}",)))
            apart = replace(over_tcp, host=link.here)
            ways[NETWORK] = Way(apart, Fleet((f"netns:{link.namespace}",)))
            yield cluster, ways
        finally:
            cluster.close()


def workload_of(asked: argparse.Namespace, face: Face) -> Workload:
    """What is driven."""
    common = Workload(asked.workload, asked.seed, face=face, connections=asked.connections,
                      terminals=asked.connections, threads=asked.threads)  # fmt: skip
    if asked.workload == "tpcc":
        return replace(common, tpcc=Tpcc(asked.scale))
    return replace(common, pgbench=Pgbench(asked.scale))


def window(
    asked: argparse.Namespace,
    cluster: Cluster,
    face: Face,
    name: str,
    way: Way,
    at: tuple[int, int],
) -> Window:
    """Drive one.

    Raises:
        Failure: The load failed, or did nothing.
    """
    workload, there = workload_of(asked, face), cluster.connection().to(DATABASE)
    protocol = Protocol(1, asked.warmup, asked.seconds, DRAIN_S, False, 0.03, CONFIDENCE, Rung.D2,
                        fleet=way.fleet)  # fmt: skip
    with psycopg.connect(**there.arguments(), autocommit=True) as session:
        session.execute("CHECKPOINT")
    c_load = loaded_workload(there).c_load if workload.tpcc else None
    server = psutil.Process(cluster.pid)
    before = cpu_s(server), host_busy_s()
    driven = drive(way.connection, workload, protocol, c_load)
    server_s, machine_s = cpu_s(server) - before[0], host_busy_s() - before[1]
    require_complete(driven, f"window of {face} by {name}", "Take a longer window.")
    return window_of(driven, Window(face, name, *at, 0, 0, 0, 0, server_s, machine_s, 0, 0))


def window_of(driven: Driven, begun: Window) -> Window:
    """Fill in what a driver tells, and turn seconds into those of a transaction."""
    most = max(driven.kinds, key=lambda kind: kind.window.ended)
    asked = sum(kind.run.succeeded + kind.run.rolled_back for kind in driven.kinds)
    assert driven.client.cpu_s is not None
    assert driven.round_trips_per_transaction is not None
    return replace(
        begun,
        per_s=driven.transactions / driven.window_s,
        p50_ns=most.response_ns["p50"],
        p99_ns=most.response_ns["p99"],
        client_cpu_s=driven.client.cpu_s / driven.transactions,
        server_cpu_s=begun.server_cpu_s / asked,
        machine_cpu_s=begun.machine_cpu_s / asked,
        round_trips=driven.round_trips_per_transaction,
        failed=sum(kind.window.failed for kind in driven.kinds),
    )


def ratio_text(windows: Sequence[Window], face: str, way: str, figure: str) -> str:
    """The ratio of a way to the socket, with its interval where there are rounds for one."""
    of = {(one.way, one.round): getattr(one, figure) for one in windows if one.face == face}
    pairs = [np.log(value / of[SOCKET, number]) for (name, number), value in of.items()
             if name == way and value > 0 and of.get((SOCKET, number), 0) > 0]  # fmt: skip
    if not pairs:
        return "-"
    if len(pairs) == 1:
        return f"×{np.exp(pairs[0]):.3f}"
    found = estimate(np.array([pairs]), CONFIDENCE)
    centre, low, high = (float(np.exp(one[0])) for one in (found.centre, found.low, found.high))
    return f"×{centre:.3f} ({low:.3f}-{high:.3f})"


def shown(windows: Sequence[Window]) -> str:
    """Medians of each face and way, and the ratios to the socket."""
    head = ["face", "way", "round trips", *(title for _, title, _, _ in FIGURES)]
    rows, ratios = [], []
    for face, way in dict.fromkeys((one.face, one.way) for one in windows):
        own = [one for one in windows if (one.face, one.way) == (face, way)]
        trips = Spread.of([one.round_trips for one in own])
        spreads = [Spread.of([getattr(one, name) for one in own]).times(factor).text(digits)
                   for name, _, digits, factor in FIGURES]  # fmt: skip
        rows.append([face, way, f"{trips.median:.1f}", *spreads])
        if way != SOCKET:
            found = [ratio_text(windows, face, way, name) for name, *_ in FIGURES]
            ratios.append([face, f"{way} / {SOCKET}", *found])
    order = ["face", "ratio", *(title for _, title, _, _ in FIGURES)]
    rounds, failed = max(one.round for one in windows), sum(one.failed for one in windows)
    note = f"n = {rounds} rounds; above median (lowest-highest), below ratios with 95% intervals."
    return "\n\n".join(
        [table(head, sorted(rows)), table(order, sorted(ratios)), f"{note} Failed: {failed}."]
    )


def measure(asked: argparse.Namespace) -> None:
    """Run all rounds; what is finished is kept in the file of --out."""
    chance, windows = np.random.default_rng(asked.seed), list[Window]()
    with linked() as link, serving(asked, link) as (cluster, ways):
        told = surroundings(Server(cluster.connection().arguments()), DATABASE)
        for number in range(1, asked.rounds + 1):
            for face in chance.permutation(asked.faces).tolist():
                for position, name in enumerate(chance.permutation([*ways]).tolist(), 1):
                    one = window(asked, cluster, face, name, ways[name], (number, position))
                    windows.append(one)
                    print(f"round {number}/{asked.rounds}, {face} by {name}: {one.per_s:,.0f}/s",
                          flush=True)  # fmt: skip
            keep(asked, "windows", windows, told)
    print(shown(windows))


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="a cluster is made below it")
    parser.add_argument("--workload", choices=("tpcb", "tpcc"), default="tpcb")
    parser.add_argument("--scale", type=int, default=50, help="branches, or warehouses")
    parser.add_argument("--faces", nargs="+", choices=get_args(Face), default=[*get_args(Face)])
    parser.add_argument("--loopback", action="store_true", help="also over TCP on this host")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1, help="of the driver")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warmup", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the load, and of the order")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--bindir", help="of an installed PostgreSQL; else the embedded one")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    return package_exit_code(lambda: measure(asked))


if __name__ == "__main__":
    sys.exit(main())
