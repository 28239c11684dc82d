r"""What many terminals with keying and think times cost, against the null server.

    python benches/terminals.py --terminals 10000 --rounds 5 --seconds 60 --cpus 0 --null-cpus 1
    python benches/terminals.py --terminals 100000 --seconds 3600 --cpus 0 --null-cpus 0
    python benches/terminals.py --terminals 1000000 --hosts 4 --connections 256 --null-threads 2

Method. TPC-C by the text, ten terminals a warehouse, so that a perfect server leads to 12.86 NOPM a
warehouse. The null server answers plausible rows at once; what is left is the driver. A round is a
driver process of its own; with `--hosts`, as many, that are hosts of one fleet on this machine, and
share terminals and connections. Over its window:

* memory: the highest resident size of the whole driver process so far (VmHWM), the interpreter
  that it lives in included, from its start to the last report before its end;
* CPU: user and system time of the driver process, as a share of one core;
* lateness: how long after its due time a terminal's request was ready to be taken up by a
  connection; the wait for a connection is not in it, it has a figure of its own (queue).

Of several hosts memory and CPU are those of all together, as on machines of their own: what their
processes share of a machine's memory (the interpreter's code) counts for each. Lateness is that of
all requests; beside it stands that of the host whose own is the highest. The head's memory and CPU
are not in it.

`--cpus` and `--null-cpus` keep driver and null server on these CPUs; the same one for both means
that the two share a core.

Limits. The null server holds no data, so its CPU says nothing about a real one. Hosts that share a
machine with each other and with it compete for its cores: only where these have time to spare is a
host's lateness its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from measure import Failure, Spread, confidence, table, write_json
from package import package_exit_code

from pgdyno.drive.driver import Wishes, drive
from pgdyno.drive.null import null_server
from pgdyno.drive.result import Driven
from pgdyno.model.fleet import Fleet
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Tpcc, Workload

TERMINALS_A_WAREHOUSE = 10
DRAIN_S = 10.0
MIB = 1 << 20


@dataclass
class Watch:
    """Reads the memory of all drivers while they run."""

    highest_bytes: dict[int, int] = field(default_factory=dict)  # by process

    def begin(self, pid: int) -> None:
        """Be told of a driver."""
        self.highest_bytes[pid] = 0

    def take(self, _progress: DriveProgress) -> None:
        """Look at them; one that has ended keeps what it had."""
        for pid in self.highest_bytes:
            with suppress(FileNotFoundError, ProcessLookupError):
                text = Path(f"/proc/{pid}/status").read_text()
                found = [line for line in text.splitlines() if line.startswith("VmHWM:")]
                if found:
                    self.highest_bytes[pid] = int(found[0].split()[1]) * 1024

    @property
    def rss_max_bytes(self) -> int:
        """Of all together."""
        return sum(self.highest_bytes.values())


@dataclass(frozen=True, slots=True)
class Round:
    """What one window showed."""

    nopm_a_warehouse: float
    cpu_share: float
    cpu_us_per_transaction: float
    rss_max_bytes: int
    late_p50_ns: int
    late_p99_ns: int
    late_p999_ns: int
    late_max_ns: int
    queue_p999_ns: int
    failed: int
    transactions: int
    window_s: float
    hosts: OfHosts | None = None  # None: one process drove


@dataclass(frozen=True, slots=True)
class OfHosts:
    """What only several hosts have."""

    cpu_share_max: float
    late_p999_max_ns: int
    skew_ns: int
    overlap: float


@contextmanager
def kept_to(cpus: Sequence[int]) -> Iterator[None]:
    """Meanwhile keep what is started to these CPUs; none: to those of this process."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(options: argparse.Namespace) -> Round:
    """Drive one window."""
    warehouses = options.terminals // TERMINALS_A_WAREHOUSE
    workload = Workload(
        kind="tpcc", seed=1, face=options.face, connections=options.connections,
        terminals=options.terminals, threads=options.threads,
        tpcc=Tpcc(warehouses, keying_multiplier=1.0, think_multiplier=1.0),
    )  # fmt: skip
    hosts = Fleet(tuple(f"local:{number}" for number in range(options.hosts)))
    protocol = Protocol(1, options.warmup, options.seconds, DRAIN_S, False, 0.03, 0.95, Rung.D0,
                        fleet=hosts if options.hosts else None)  # fmt: skip
    watch = Watch()
    with (
        null_server(workload, threads=options.null_threads, cpus=options.null_cpus) as server,
        kept_to(options.cpus),
    ):
        driven = drive(server.connection, workload, protocol, None, watch.take,
                       Wishes(options.cpus), started=watch.begin)  # fmt: skip
    return round_of(driven, warehouses, watch.rss_max_bytes)


def round_of(driven: Driven, warehouses: int, rss_max_bytes: int) -> Round:
    """Read the figures off a result."""
    assert driven.error is None, driven.error
    assert driven.nopm is not None
    client = driven.client
    cpu_s = client.cpu_s
    assert cpu_s is not None, "our own driver tells"
    if not driven.transactions:
        raise Failure("nothing was done in the window", "Take a longer one.")
    return Round(
        nopm_a_warehouse=driven.nopm / warehouses,
        cpu_share=cpu_s / client.window_s,
        cpu_us_per_transaction=1e6 * cpu_s / driven.transactions,
        rss_max_bytes=rss_max_bytes,
        late_p50_ns=driven.late_ns["p50"],
        late_p99_ns=driven.late_ns["p99"],
        late_p999_ns=driven.late_ns["p999"],
        late_max_ns=driven.late_ns["max"],
        queue_p999_ns=max(kind.queue_ns["p999"] for kind in driven.kinds),
        failed=sum(kind.window.failed for kind in driven.kinds),
        transactions=driven.transactions,
        window_s=driven.window_s,
        hosts=of_hosts(driven),
    )


def of_hosts(driven: Driven) -> OfHosts | None:
    """What several hosts tell beside; None: one process drove.

    Raises:
        Failure: One was lost.
    """
    fleet = driven.fleet
    if fleet is None:
        return None
    if fleet.lost:
        raise Failure("; ".join(fleet.lost), "Take fewer hosts, or a machine that is not busy.")
    shares = [(one.client.cpu_s or 0.0) / one.client.window_s for one in fleet.hosts]
    late_ns = max(one.late_ns["p999"] for one in fleet.hosts)
    return OfHosts(cpu_share_max=max(shares), late_p999_max_ns=late_ns, skew_ns=fleet.skew_ns,
                   overlap=fleet.overlap)  # fmt: skip


ROWS = {
    "NOPM a warehouse": ("nopm_a_warehouse", 1.0, 3),
    "CPU, % of a core": ("cpu_share", 100.0, 2),
    "CPU a transaction, us": ("cpu_us_per_transaction", 1.0, 1),
    "memory, MiB": ("rss_max_bytes", 1 / MIB, 1),
    "lateness p50, ms": ("late_p50_ns", 1e-6, 2),
    "lateness p99, ms": ("late_p99_ns", 1e-6, 2),
    "lateness p99.9, ms": ("late_p999_ns", 1e-6, 2),
    "lateness max, ms": ("late_max_ns", 1e-6, 2),
    "wait for a connection p99.9, ms": ("queue_p999_ns", 1e-6, 2),
    "failed": ("failed", 1.0, 0),
    "transactions": ("transactions", 1.0, 0),
}
HOSTS_ROWS = {
    "CPU of the busiest host, % of a core": ("cpu_share_max", 100.0, 2),
    "lateness p99.9 of the latest host, ms": ("late_p999_max_ns", 1e-6, 2),
    "begins apart at most, ms": ("skew_ns", 1e-6, 3),
    "together, % of the window": ("overlap", 100.0, 3),
}


def shown(rounds: list[Round]) -> str:
    """Median and extremes of all rounds as a table."""
    rows = []
    for name, (key, factor, digits) in ROWS.items():
        spread = Spread.of([float(getattr(one, key)) for one in rounds])
        rows.append((name, spread.times(factor).text(digits)))
    several = [one.hosts for one in rounds if one.hosts is not None]
    for name, (key, factor, digits) in HOSTS_ROWS.items() if several else ():
        spread = Spread.of([float(getattr(one, key)) for one in several])
        rows.append((name, spread.times(factor).text(digits)))
    n = len(rounds)
    sure = f"; they enclose the median with {confidence(n):.0%} confidence" if n > 1 else ""
    return table(("figure", "median (lowest-highest)"), rows) + f"\n\nn = {n}{sure}."


def measure(options: argparse.Namespace) -> None:
    """Run all rounds; what is finished is kept in the file of --out."""
    if options.hosts > options.connections:
        raise Failure(f"--hosts is {options.hosts}, --connections is {options.connections}",
                      "Every host takes one at least.")  # fmt: skip
    rounds = []
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for number in range(1, options.rounds + 1):
        rounds.append(run(options))
        last = rounds[-1]
        print(
            f"round {number}/{options.rounds}: {last.cpu_share:.1%} of a core, "
            f"{f'the busiest host {last.hosts.cpu_share_max:.1%}, ' if last.hosts else ''}"
            f"{last.rss_max_bytes / MIB:.1f} MiB, "
            f"lateness p99.9 {last.late_p999_ns / 1e6:.2f} ms",
            flush=True,
        )
        if options.out:
            document = {
                "started_utc": started,
                "kernel": platform.release(),
                "cores": os.cpu_count(),
                "options": {key: str(value) for key, value in vars(options).items()},
                "rounds": [asdict(one) for one in rounds],
            }
            write_json(options.out, document)
    print(shown(rounds))


def cpus(text: str) -> tuple[int, ...]:
    """Numbers of CPUs, e.g. `0,1`."""
    return tuple(int(word) for word in text.split(","))


def main() -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--terminals", type=int, required=True)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1, help="of each driver")
    parser.add_argument("--hosts", type=int, default=0, help="0: one process, and no fleet")
    parser.add_argument("--face", default="statement")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warmup", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cpus", type=cpus, default=(), help="of all drivers")
    parser.add_argument("--null-cpus", type=cpus, default=(), help="of the null server")
    parser.add_argument("--null-threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    return package_exit_code(lambda: measure(options))


if __name__ == "__main__":
    sys.exit(main())
