r"""How much of what full pages cost does a guarded server keep? Within one server's life.

    PYTHONPATH=. python benches/guard_gain.py --folder /var/tmp --megabytes 60 --out gain.json
    PYTHONPATH=. python benches/guard_gain.py --folder /tmp --rounds 1 --settle 5 --seconds 5

The first takes 31 minutes, the second tells whether it works.

Method. A primary with TPC-B and a standby that streams, both under load by `pgbench` all the time;
checkpoints every 30 s, by time. A round has each arm once, in an order drawn anew:

* on: full_page_writes = on;
* off: off, with nothing that watches (ALTER SYSTEM, and the server reads it anew);
* guarded: `pgdyno guard watch` runs, and has turned them off.

After each change so many seconds pass (`--settle`: a checkpoint has begun since, and images are
written anew), then as many as a cycle of checkpoints lasts are measured (`--seconds`), so that each
window has one whole cycle, wherever it begins. With `--megabytes` the disk takes so many a second
from the primary (a control group of version 1): where it takes all that a server writes, full pages
cost next to nothing, and there is no gain to keep. Commits and bytes of WAL are the server's
counters. What is kept is (guarded - on) / (off - on) of the means; its interval is that of rounds
drawn again, 10,000 times.

Limits. The standby runs on the same machine, in all arms alike: who has a guard has one anyway.
A server that reads its settings anew does not forget what its buffers hold, so no window is that of
a server just started.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
from measure import Command, Failure, Spread, keep, table, until
from package import package_exit_code, target_of
from tests.cluster.planted import Server
from tests.cluster.plants import limited

from pgdyno import Guard, GuardLimits
from pgdyno.guard.state import VARIABLE
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.probe.folder import own_folder
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb
from pgdyno.target.standby import Standby

SETTINGS = {
    "shared_buffers": "3GB", "max_wal_size": "32GB", "checkpoint_timeout": "30s",
    "restart_after_crash": "off", "max_wal_senders": "4",
}  # fmt: skip
ACCEPTED = ("checkpoint-timeout", "checksums", "separate-power", "unlogged")
ARMS = ("on", "off", "guarded")
HINT = "By hand, `pgdyno guard watch` says why."
PATIENCE_S, DRAWS = 120.0, 10_000


@dataclass(frozen=True, slots=True)
class Window:
    """What was done in one."""

    arm: str
    round: int
    seconds: float
    commits: int
    wal_bytes: int

    @property
    def tps(self) -> float:
        """Commits a second."""
        return self.commits / self.seconds


@dataclass
class Pair:
    """A primary and its standby."""

    primary: Cluster
    standby: Standby
    binaries: Binaries
    folder: Path

    def session(self) -> psycopg.Connection[tuple[object, ...]]:
        """On the primary, in autocommit mode."""
        return psycopg.connect(**self.primary.connection().arguments(), autocommit=True)

    def conninfos(self) -> tuple[str, str]:
        """Of the primary and the standby."""
        both = (self.primary.connection(), self.standby.cluster.connection())
        primary, standby = (
            f"host={one.host} port={one.port} user={one.user} dbname=postgres" for one in both
        )
        return primary, standby


@contextmanager
def pair(asked: argparse.Namespace) -> Iterator[Pair]:
    """A pair whose primary holds pgbench's tables; the guard is armed."""
    user = postgres_user()
    binaries = find_binaries(target_of(asked.bindir), user)
    origin = Origin(OriginKind.TARGET, "the benchmark's")
    with ExitStack() as stack:
        folder = stack.enter_context(own_folder(asked.folder))
        memory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        memory.chmod(0o755)
        (memory / "run").mkdir()
        os.environ[VARIABLE] = str(folder / "state")
        initdb(binaries, folder / "data", user, ("--data-checksums",))
        primary = Cluster(binaries, folder / "data", user, "socket")
        stack.callback(primary.close)
        primary.start([Setting(name, value, origin) for name, value in SETTINGS.items()])
        at = primary.connection()
        words = [str(binaries.program("pgbench")), "-i", "-q", "-s", str(asked.scale), "-h",
                 at.host, "-p", str(at.port), "-U", at.user, "postgres"]  # fmt: skip
        with Command(words, memory / "load", os.environ) as command:
            if command.wait(3600.0) != 0:
                raise command.failure("failed")
        standby = Standby(primary, binaries, user)
        stack.callback(standby.close)
        standby.start()
        made = Pair(primary, standby, binaries, memory)
        of_primary, of_standby = made.conninfos()
        guard = Guard(primary.data, of_standby, primary=of_primary, run_folder=memory / "run",
                      limits=GuardLimits(hold_s=1.0))  # fmt: skip
        if not until(lambda: guard.arm(ACCEPTED).allowed, PATIENCE_S):
            raise Failure(f"the guard refuses: {guard.check(ACCEPTED).refused}", "A defect.")
        yield made


@contextmanager
def slow_disk(made: Pair, megabytes: int | None) -> Iterator[None]:
    """Meanwhile the disk takes so many megabytes a second from the primary; None: all it can."""
    if megabytes is None:
        yield
        return
    limit = {"blkio.throttle.write_bps_device": f"DEVICE {megabytes * 1_000_000}"}
    with limited("blkio", limit)(Server(made.primary.data)):
        yield


@contextmanager
def arm(made: Pair, name: str) -> Iterator[None]:
    """Meanwhile full pages are as this arm has them.

    Raises:
        Failure: The server does not follow.
    """
    with ExitStack() as stack, made.session() as session:
        if name == "guarded":
            session.execute("ALTER SYSTEM RESET full_page_writes")
            session.execute("SELECT pg_reload_conf()")
            primary, standby = made.conninfos()
            words = [sys.executable, "-m", "pgdyno", "guard", "watch", str(made.primary.data),
                     "--standby", standby, "--primary", primary]  # fmt: skip
            stack.enter_context(Command(words, made.folder / "watch", os.environ))
        else:
            session.execute(f"ALTER SYSTEM SET full_page_writes = {name}".encode())
            session.execute("SELECT pg_reload_conf()")
        wanted = "on" if name == "on" else "off"
        if not until(lambda: full_pages(session) == wanted, PATIENCE_S):
            raise Failure(f"full pages are not {wanted} after {PATIENCE_S:g} s ({name})", HINT)
        yield
        if full_pages(session) != wanted:
            raise Failure(f"full pages are not {wanted} any more in the window ({name})", HINT)


def full_pages(session: psycopg.Connection[tuple[object, ...]]) -> object:
    """As the server has them now."""
    row = session.execute("SHOW full_page_writes").fetchone()
    return row[0] if row else None


def counted(made: Pair) -> tuple[float, int, int]:
    """When, commits until then, bytes of WAL until then."""
    with made.session() as session:
        row = session.execute(
            "SELECT xact_commit, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
            " FROM pg_stat_database WHERE datname = 'postgres'"
        ).fetchone()
    assert row is not None
    return time.monotonic(), int(str(row[0])), int(str(row[1]))


def window(made: Pair, name: str, number: int, asked: argparse.Namespace) -> Window:
    """One whole cycle of checkpoints."""
    with arm(made, name):
        time.sleep(asked.settle)
        before = counted(made)
        time.sleep(asked.seconds)
        after = counted(made)
    return Window(name, number, after[0] - before[0], after[1] - before[1], after[2] - before[2])


def kept(found: Sequence[Window]) -> tuple[float, float, float]:
    """The share of the gain that the guarded arm has: by all rounds, and its interval (95 %)."""
    by_arm = [[one.tps for one in found if one.arm == name] for name in ARMS]
    values = np.asarray(by_arm)  # arms by rounds
    drawn = np.random.default_rng(1).integers(values.shape[1], size=(DRAWS, values.shape[1]))
    on, off, guarded = (one[drawn].mean(axis=1) for one in values)
    low, high = np.quantile((guarded - on) / (off - on), [0.025, 0.975])
    on, off, guarded = values.mean(axis=1)
    return float((guarded - on) / (off - on)), float(low), float(high)


def shown(found: Sequence[Window]) -> str:
    """Medians by arm, ratios by round, and what is kept."""
    rows = []
    own = {name: [one for one in found if one.arm == name] for name in ARMS}
    for name, ones in own.items():
        ratios = [one.tps / on.tps for one, on in zip(ones, own["on"], strict=True)]
        rows.append([
            name, Spread.of([one.tps for one in ones]).text(0), Spread.of(ratios).text(3),
            Spread.of([one.wal_bytes / one.commits for one in ones]).text(0), str(len(ones)),
        ])  # fmt: skip
    text = table(["full pages", "tps", "against on", "bytes of WAL a commit", "n"], rows)
    if len(own["on"]) > 1:
        share, low, high = kept(found)
        text += (
            f"\n\nOf the gain of off, guarded keeps {share:.1%} ({low:.1%} to {high:.1%}, 95 %)."
        )
    return f"{text}\n\nMedian (lowest-highest) of rounds."


def measure(asked: argparse.Namespace) -> None:
    """Run all rounds under one load; what is finished is kept in the file of --out."""
    chance, found = np.random.default_rng(asked.seed), list[Window]()
    with pair(asked) as made, slow_disk(made, asked.megabytes):
        at = made.primary.connection()
        words = [str(made.binaries.program("pgbench")), "-n", "-M", "prepared", "-c",
                 str(asked.connections), "-j", str(os.cpu_count() or 1), "-T", "86400", "-h",
                 at.host, "-p", str(at.port), "-U", at.user, "postgres"]  # fmt: skip
        with Command(words, made.folder / "load", os.environ) as load:
            for number in range(1, asked.rounds + 1):
                for nth in chance.permutation(len(ARMS)).tolist():
                    one = window(made, ARMS[nth], number, asked)
                    if load.code() is not None:
                        raise load.failure("ended too early")
                    found.append(one)
                    print(f"round {number}/{asked.rounds}, {one.arm}: {one.tps:,.0f} tps",
                          flush=True)  # fmt: skip
                keep(asked, "windows", found)
    print(shown(found))


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="clusters are made below it")
    parser.add_argument("--scale", type=int, default=100, help="of pgbench's tables")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--megabytes", type=int, help="that the primary's disk takes a second")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--settle", type=float, default=31.0, help="seconds after each change")
    parser.add_argument("--seconds", type=float, default=30.0, help="that a cycle lasts")
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("--bindir", help="of an installed PostgreSQL; else the embedded one")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    return package_exit_code(lambda: measure(asked))


if __name__ == "__main__":
    sys.exit(main())
