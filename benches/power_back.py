r"""How long from power back to the first commit: full pages, guarded, or a failover?

    python benches/power_back.py --folder /var/tmp --gigabytes 1 --rounds 10 --out back.json
    python benches/power_back.py --folder /var/tmp --gigabytes 0.1 --blocks 500 --rounds 1  # try

Method. One primary with one table, half of each page free, and a standby that streams. Each trial:
CHECKPOINT, one row of so many pages is changed, spread evenly over the table; when the standby has
replayed that the primary is killed, the second half of every page that its redo reads is
overwritten, and all of its files are dropped from the page cache, which a power cut empties, too.
Then, in an order drawn anew in each round, it is timed until a row that was inserted is committed:

* full-pages: PostgreSQL as it comes: it starts, and recovers from the images in its WAL;
* guarded: full pages off: it is repaired from the standby, starts, and recovers;
* failover: the standby is promoted, and has that commit.

Limits. The time that somebody or something takes to notice a dead primary is in none of them, and
what a machine takes to boot neither. Both servers share this machine, its memory and its disk.
Needs room for two clusters of the size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
from measure import Failure, Spread, keep, table
from package import package_exit_code
from repair import Bed, bed, crashed, settings

from pgdyno import Guard
from pgdyno.shell import postgres_user
from pgdyno.target.cluster import Cluster
from pgdyno.target.standby import Standby

ARMS = {"full-pages": "on", "guarded": "off", "failover": "off"}  # full_page_writes
COMMIT = "INSERT INTO back VALUES (1)"


@dataclass(frozen=True, slots=True)
class Back:
    """What passed until the first commit."""

    arm: str
    changed: int  # pages of which a row was changed
    round: int
    seconds: float
    repair_s: float  # of that
    blocks: int  # that were written by the repair


def out_of_memory(data: Path) -> None:
    """Write all files out and drop them from the page cache."""
    for path in data.rglob("*"):
        if path.is_file() and not path.is_symlink():
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def committed(cluster: Cluster, *before: str) -> None:
    """Run statements, the last of which is a commit."""
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        for one in (*before, COMMIT):
            session.execute(one.encode())


def once(bed: Bed, arm: str, changed: int, number: int, journal: Path) -> Back:
    """One power cut, and all until the first commit after it.

    Raises:
        Failure: The table holds something else afterwards.
    """
    bed.primary.stop(clean=True)
    bed.primary.start(settings(ARMS[arm]))
    wanted = crashed(bed, changed)
    out_of_memory(bed.primary.data)
    at = bed.standby.cluster.connection()
    repair_s, blocks = 0.0, 0
    began = time.monotonic()
    if arm == "failover":
        committed(bed.standby.cluster, "SELECT pg_promote(true, 600)")
    else:
        if arm == "guarded":
            conninfo = f"host={at.host} port={at.port} user={at.user} dbname=postgres"
            report = Guard(bed.primary.data, conninfo).repair(journals=journal)
            repair_s, blocks = time.monotonic() - began, report.blocks_written
        bed.primary.start(settings(ARMS[arm]), recovers=True)
        committed(bed.primary)
    seconds = time.monotonic() - began
    if arm == "failover":
        _taken_over(bed, wanted)
    elif (found := bed.content()) != wanted:
        raise Failure(f"the table holds {found}, and held {wanted}", "That is a defect.")
    return Back(arm, changed, number, seconds, repair_s, blocks)


def _taken_over(bed: Bed, wanted: tuple[int, int]) -> None:
    """What was promoted is the primary from here on, and has a standby of its own.

    Raises:
        Failure: It does not hold what the old one held.
    """
    at = bed.standby.cluster.connection()
    with psycopg.connect(**at.arguments(), autocommit=True) as session:
        found = session.execute("SELECT count(*), sum(v) FROM t").fetchone()
    if found != wanted:
        raise Failure(f"the promoted standby holds {found}, and held {wanted}", "A defect.")
    bed.standby.stop(clean=True)
    copy = bed.standby.cluster.data
    for path in (copy / name for name in ("standby.signal", "postgresql.auto.conf")):
        path.unlink(missing_ok=True)
    bed.primary.close()
    old = bed.primary.data
    shutil.rmtree(old)
    copy.rename(old)
    user = postgres_user()
    bed.primary = Cluster(bed.binaries, old, user, "socket")
    bed.primary.start(settings())
    bed.standby = Standby(bed.primary, bed.binaries, user)
    bed.standby.start()


def close_primary(bed: Bed) -> None:
    """Stop the one that it has by then."""
    bed.primary.close()


def shown(found: Sequence[Back], asked: argparse.Namespace) -> str:
    """Medians by the pages that were changed and the arm."""
    rows: list[list[str]] = []
    for changed, arm in sorted({(one.changed, one.arm) for one in found}):
        own = [one for one in found if (one.changed, one.arm) == (changed, arm)]
        rows.append([
            f"{changed:,}", arm, Spread.of([one.seconds for one in own]).text(2),
            Spread.of([one.repair_s for one in own]).text(2),
            Spread.of([float(one.blocks) for one in own]).text(0), str(len(own)),
        ])  # fmt: skip
    head = ["pages changed", "arm", "seconds to the first commit", "of that, repair", "blocks", "n"]
    return table(head, rows) + f"\n\nOver {asked.rounds} rounds: median (lowest-highest)."


def measure(asked: argparse.Namespace) -> None:
    """Run all rounds; what is finished is kept in the file of --out."""
    chance, found = np.random.default_rng(asked.seed), list[Back]()
    with ExitStack() as stack:
        made = stack.enter_context(bed(asked, asked.gigabytes))
        stack.callback(close_primary, made)
        made.execute("CREATE TABLE back (i int)")
        arms = [(arm, changed) for arm in ARMS for changed in asked.blocks]
        for number in range(1, asked.rounds + 1):
            for at in chance.permutation(len(arms)).tolist():
                journal = made.primary.data.parent / f"journal-{number}-{at}"
                one = once(made, *arms[int(at)], number, journal)
                found.append(one)
                print(f"round {number}/{asked.rounds}, {one.arm}, {one.changed:,} pages: "
                      f"{one.seconds:.2f} s", flush=True)  # fmt: skip
            keep(asked, "backs", found)
    print(shown(found, asked))


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="clusters are made below it")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--blocks", type=int, nargs="+", default=[4_000, 40_000])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("--bindir", help="of an installed PostgreSQL; else the embedded one")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    asked.delays = []
    return package_exit_code(lambda: measure(asked))


if __name__ == "__main__":
    sys.exit(main())
