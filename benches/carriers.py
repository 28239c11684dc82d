r"""How exactly do hosts begin together, and what does it cost to reach them: by pipe, SSH, Ray?

    python benches/carriers.py --conninfo 'host=10.0.0.5 dbname=tpcb' --rounds 9 \
        --way none= --way pipe=local:a,local:b --way ssh=ssh://one,ssh://two \
        --way ray=ray:one,ray:two --ssh-config client

Method. Hosts of each way drive the same TPC-B at a rate far below what they could, in windows whose
order is drawn anew in each round. The database is loaded before (`pgdyno load tpcb`), the password
is in PGPASSWORD. A way without hosts is the driver as it runs without a fleet. Of each window:

* skew: from the first host's begin to the last's; bound: how exactly that is known;
* together: the share of the window in which all hosts drove;
* carriers' CPU: of the processes that carry lines between head and hosts (SSH's, Ray's daemons), of
  one core; where all hosts are one machine, that is of all of them, told by each host;
* other CPU: what the machine of the first host spent in the window beside the drivers.

Limits. Hosts in network namespaces share a kernel and its CPUs: nothing travels, and clocks cannot
drift. Daemons of a cluster run whether somebody drives or not: `other CPU` of a way without
hosts has them too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measure import Failure, Spread, host_busy_s, keep, table
from package import package_exit_code, require_complete

from pgdyno.drive.driver import drive
from pgdyno.model.fleet import Fleet
from pgdyno.model.plan import Protocol
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Pgbench, Workload
from pgdyno.target.conninfo import resolve

DRAIN_S = 10.0
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Window:
    """What one window showed."""

    way: str
    round: int
    per_s: float
    skew_ns: int
    bound_ns: int
    overlap: float  # 0 to 1
    carriers_share: float  # of one core
    other_share: float  # of one core


FIGURES = (
    ("per_s", "transactions/s", 0, 1.0),
    ("skew_ns", "skew, us", 0, 1e-3),
    ("bound_ns", "bound, us", 0, 1e-3),
    ("overlap", "together, %", 3, 100.0),
    ("carriers_share", "carriers' CPU, % of a core", 2, 100.0),
    ("other_share", "other CPU, % of a core", 1, 100.0),
)


def ways(asked: argparse.Namespace) -> dict[str, Fleet | None]:
    """Hosts by the name of their way.

    Raises:
        Failure: One is not written as NAME=HOST,HOST.
    """
    found: dict[str, Fleet | None] = {}
    for text in asked.way:
        name, mark, hosts = text.partition("=")
        if not mark or not name:
            raise Failure(f"--way is {text!r}", "Write it as NAME=HOST,HOST, or NAME= for none.")
        named = tuple(hosts.split(",")) if hosts else ()
        found[name] = Fleet(named, python=asked.python, ssh_config=asked.ssh_config) if named \
            else None  # fmt: skip
    return found


def window(asked: argparse.Namespace, name: str, fleet: Fleet | None, number: int) -> Window:
    """Drive one.

    Raises:
        Failure: The load failed, or did nothing.
    """
    load = Workload("tpcb", asked.seed, connections=4, terminals=4, threads=1,
                    pgbench=Pgbench(asked.scale),
                    arrivals=Arrivals("open", asked.rate))  # fmt: skip
    protocol = Protocol(1, asked.warmup, asked.seconds, DRAIN_S, False, 0.03, CONFIDENCE, Rung.D2,
                        fleet=fleet)  # fmt: skip
    before = host_busy_s()
    driven = drive(resolve(asked.conninfo), load, protocol, None)
    busy_s = host_busy_s() - before
    require_complete(driven, f"window by {name}", "Is the database loaded, and fast enough?")
    assert driven.client.cpu_s is not None
    per_s = driven.transactions / driven.window_s
    whole_s = asked.warmup + asked.seconds
    begun = Window(name, number, per_s, 0, 0, 1.0, 0.0, (busy_s - driven.client.cpu_s) / whole_s)
    if driven.fleet is None:
        return begun
    around = [host.around for host in driven.fleet.hosts if host.around is not None]
    carried = max((sum(one.carriers_cpu_s.values()) / one.seconds for one in around), default=0.0)
    other = max(((one.cpu_busy_s - driven.client.cpu_s) / one.seconds for one in around),
                default=begun.other_share)  # fmt: skip
    return replace(
        begun, skew_ns=driven.fleet.skew_ns, overlap=driven.fleet.overlap,
        bound_ns=max(host.bound_ns for host in driven.fleet.hosts), carriers_share=carried,
        other_share=other,
    )  # fmt: skip


def shown(windows: Sequence[Window]) -> str:
    """Medians of each way."""
    rows = []
    for way in dict.fromkeys(one.way for one in windows):
        own = [one for one in windows if one.way == way]
        rows.append([way, *(
            Spread.of([getattr(one, name) for one in own]).times(factor).text(digits)
            for name, _, digits, factor in FIGURES
        )])  # fmt: skip
    rounds = max(one.round for one in windows)
    told = f"n = {rounds} rounds; median (lowest-highest)."
    return table(["way", *(title for _, title, _, _ in FIGURES)], sorted(rows)) + f"\n\n{told}"


def measure(asked: argparse.Namespace) -> None:
    """Run all rounds; what is finished is kept in the file of --out."""
    chance, windows, fleets = np.random.default_rng(asked.seed), list[Window](), ways(asked)
    for number in range(1, asked.rounds + 1):
        for name in chance.permutation([*fleets]).tolist():
            one = window(asked, name, fleets[name], number)
            windows.append(one)
            print(f"round {number}/{asked.rounds}, {name}: {one.skew_ns / 1e3:.0f} us apart, "
                  f"{one.carriers_share:.1%} of a core to carry lines", flush=True)  # fmt: skip
        keep(asked, "windows", windows)
    print(shown(windows))


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conninfo", required=True, help="a database of TPC-B")
    parser.add_argument("--way", action="append", required=True, metavar="NAME=HOST,HOST")
    parser.add_argument("--ssh-config")
    parser.add_argument("--python", default=sys.executable, help="on the hosts")
    parser.add_argument("--scale", type=int, default=1, help="branches that were loaded")
    parser.add_argument("--rate", type=float, default=200.0, help="transactions a second")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warmup", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the load, and of the order")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    return package_exit_code(lambda: measure(asked))


if __name__ == "__main__":
    sys.exit(main())
