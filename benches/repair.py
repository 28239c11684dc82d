r"""What does a repair cost, beside a whole copy: by the blocks that changed, not by the size?

    python benches/repair.py --folder /var/tmp --gigabytes 1 20 --rounds 5 --out repair.json
    python benches/repair.py --folder /var/tmp --gigabytes 0.1 --blocks 500 --rounds 1    # works?

Method. For each size a primary with full_page_writes off and one table, half of each page free, and
a standby that streams. In a round and for each number of blocks: CHECKPOINT, one row of so many
pages is changed, spread evenly over the table; when the standby has replayed that the primary is
killed, and the second half of every page that its redo reads is overwritten. Then `Guard.repair` is
timed, from reading WAL to the last synced write, journal included, and the server starts and must
have the same sums as before. In turn, in an order drawn anew:

* delays: pages come over TCP through a relay that holds every byte back for half of the delay in
  either direction, so that a question and its answer take that much longer; 0 is a relay, too;
* copy: `pg_basebackup` of the primary, as one stream into nothing, without WAL: what a whole copy
  takes at least, as nothing of it is written.

Limits. Both servers, the repair and the relay share this machine, its memory and its disk; pages
that were changed just now are in the standby's memory. Needs room for two clusters of a size.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import numpy as np
import psycopg
from measure import Command, Failure, Spread, keep, table
from package import package_exit_code, target_of

from pgdyno import Guard
from pgdyno.folders import Folder
from pgdyno.guard.relations import opened
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.pages.redo import read_redo
from pgdyno.probe.folder import own_folder
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb
from pgdyno.target.standby import Standby

BLOCK = 8192
ROWS_A_PAGE = 4
SETTINGS = {
    "autovacuum": "off", "shared_buffers": "1GB",
    "max_wal_size": "8GB", "checkpoint_timeout": "1h", "max_wal_senders": "4",
}  # fmt: skip
COPY, PATIENCE_S = "copy", 3600.0
MB = 1e6
Content = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Repair:
    """What one repair, or one copy, took."""

    gigabytes: float
    what: str  # "copy", or the delay
    changed: int  # pages of which a row was changed; of a copy 0
    round: int
    blocks: int  # that redo read; of a copy 0
    bytes: int  # written; of a copy what came
    seconds: float

    @property
    def arm(self) -> tuple[float, str, int]:
        """What is the same in all rounds."""
        return self.gigabytes, self.what, self.changed


@dataclass
class Bed:
    """A primary, its standby, and the relays to it by their delay in ms."""

    gigabytes: float
    primary: Cluster
    standby: Standby
    binaries: Binaries
    relays: dict[float, int]

    def rows(self) -> int:
        """Of the table."""
        return int(self.gigabytes * 2**30 / BLOCK) * ROWS_A_PAGE

    def execute(self, *statements: str) -> list[Content]:
        """Run them on the primary; rows of the last one."""
        at = self.primary.connection()
        with psycopg.connect(**at.arguments(), autocommit=True) as session:
            for one in statements:
                cursor = session.execute(one.encode())
            return cursor.fetchall() if cursor.description else []

    def content(self) -> Content:
        """Count and sum of the table."""
        return self.execute("SELECT count(*), sum(v) FROM t")[0]


async def _relay(listening: Pipe, there: str, delays: Sequence[float]) -> None:
    async def pass_on(
        source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay_s: float
    ) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.read(1 << 16):
            loop.call_later(delay_s, sink.write, data)
        loop.call_later(delay_s, sink.close)

    def served(delay_ms: float) -> object:
        async def serve(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            back, forth = await asyncio.open_unix_connection(there)
            half_s = delay_ms / 2000
            with contextlib.suppress(OSError):
                await asyncio.gather(pass_on(source, forth, half_s), pass_on(back, sink, half_s))

        return asyncio.start_server(serve, "127.0.0.1", 0)

    servers = [await served(one) for one in delays]  # type: ignore[misc]
    listening.send([one.sockets[0].getsockname()[1] for one in servers])
    await asyncio.Event().wait()


def _relaying(listening: Pipe, there: str, delays: Sequence[float]) -> None:
    asyncio.run(_relay(listening, there, delays))


@contextmanager
def relayed(there: Path, delays: Sequence[float]) -> Iterator[dict[float, int]]:
    """Ports that lead to a Unix socket, by the delay of an answer in ms."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_relaying, args=(theirs, str(there), delays))
    process.start()
    try:
        yield dict(zip(delays, ours.recv(), strict=True))
    finally:
        process.kill()
        process.join()


def settings(full_page_writes: str = "off") -> list[Setting]:
    """What a primary is started with."""
    origin = Origin(OriginKind.TARGET, "the benchmark's")
    values = SETTINGS | {"full_page_writes": full_page_writes}
    return [Setting(name, value, origin) for name, value in values.items()]


@contextmanager
def bed(asked: argparse.Namespace, gigabytes: float) -> Iterator[Bed]:
    """A filled primary and its standby."""
    user = postgres_user()
    binaries = find_binaries(target_of(asked.bindir), user)
    with own_folder(asked.folder) as folder:
        initdb(binaries, folder / "data", user, ("--data-checksums",))
        primary = Cluster(binaries, folder / "data", user, "socket")
        try:
            primary.start(settings())
            made = Bed(gigabytes, primary, None, binaries, {})  # type: ignore[arg-type]
            made.execute(
                "CREATE TABLE t (i int, v bigint, pad text) WITH (fillfactor = 50)",
                "ALTER TABLE t ALTER pad SET STORAGE PLAIN",
                "INSERT INTO t SELECT i, 0, repeat('x', 920)"  # noqa: S608  a number of ours
                f" FROM generate_series(1, {made.rows()}) AS i",
                "CREATE UNIQUE INDEX ON t (i)",
                "VACUUM (FREEZE, ANALYZE) t",
                "CHECKPOINT",
            )
            made.standby = Standby(primary, binaries, user)
            made.standby.start()
            at = made.standby.cluster.connection()
            with relayed(Path(at.host) / f".s.PGSQL.{at.port}", asked.delays) as ports:
                made.relays = ports
                yield made
            made.standby.close()
        finally:
            primary.close()


def crashed(bed: Bed, blocks: int) -> Content:
    """Change rows of so many pages, kill the primary, tear its pages; what the table holds."""
    step = max(1, bed.rows() // blocks)
    bed.execute(
        "CHECKPOINT",
        "UPDATE t SET v = v + 1 WHERE i IN"  # noqa: S608  numbers of ours
        f" (SELECT 1 + n * {step} FROM generate_series(0, {blocks - 1}) AS n)",
    )
    content = bed.content()
    lsn = bed.execute("SELECT pg_current_wal_flush_lsn()::text, 0")[0][0]
    bed.standby.wait_replayed(str(lsn))
    bed.primary.stop(clean=False)
    with Folder.hold(bed.primary.data) as data:
        needs = read_redo(data).needs
        assert needs is not None
        for file in needs.files:
            with opened(data, file.path, writes=True) as handle:
                if handle is None:
                    continue
                there = os.fstat(handle).st_size // BLOCK
                for first, count in file.runs:
                    for block in range(first - file.first_block, first - file.first_block + count):
                        if block < there:
                            os.pwrite(handle, b"\xee" * (BLOCK // 2), block * BLOCK + BLOCK // 2)
    return content


def repaired(bed: Bed, delay_ms: float, blocks: int, number: int, journals: Path) -> Repair:
    """One repair, and the server's start after it.

    Raises:
        Failure: The table holds something else afterwards.
    """
    wanted = crashed(bed, blocks)
    conninfo = f"host=127.0.0.1 port={bed.relays[delay_ms]} user=postgres dbname=postgres"
    began = time.monotonic()
    report = Guard(bed.primary.data, conninfo).repair(journals=journals)
    seconds = time.monotonic() - began
    bed.primary.start(settings())
    if (found := bed.content()) != wanted:
        raise Failure(f"the table holds {found}, and held {wanted}", "That is a defect.")
    return Repair(bed.gigabytes, f"{delay_ms:g} ms", blocks, number, report.blocks_needed,
                  report.blocks_written * BLOCK, seconds)  # fmt: skip


def copied(bed: Bed, number: int) -> Repair:
    """A whole copy; of the primary, as a standby refuses one where full pages were off."""
    at = bed.primary.connection()
    words = [str(bed.binaries.program("pg_basebackup")), "-h", at.host, "-p", str(at.port), "-U",
             at.user, "-D", "-", "-F", "tar", "-X", "none", "-c", "fast"]  # fmt: skip
    began = time.monotonic()
    with Command(words, Path(os.devnull), os.environ) as command:
        if command.wait(PATIENCE_S) != 0:
            raise command.failure("failed")
    seconds = time.monotonic() - began
    bytes_ = sum(one.stat().st_size for one in bed.primary.data.rglob("*")
                 if one.is_file() and "pg_wal" not in one.parts)  # fmt: skip
    return Repair(bed.gigabytes, COPY, 0, number, 0, bytes_, seconds)


def once(bed: Bed, delay_ms: float | None, blocks: int, number: int, journal: Path) -> Repair:
    """A repair, or without a delay a copy."""
    if delay_ms is None:
        return copied(bed, number)
    return repaired(bed, delay_ms, blocks, number, journal)


def shown(found: Sequence[Repair], asked: argparse.Namespace) -> str:
    """Medians by size, what, and the blocks that were changed."""
    rows: list[list[str]] = []
    for gigabytes, what, changed in sorted({one.arm for one in found}):
        own = [one for one in found if one.arm == (gigabytes, what, changed)]
        rows.append([
            f"{gigabytes:g}", what, Spread.of([float(one.blocks) for one in own]).text(0),
            Spread.of([one.bytes / MB for one in own]).text(1),
            Spread.of([one.seconds for one in own]).text(2),
            Spread.of([one.bytes / MB / one.seconds for one in own]).text(1), str(len(own)),
        ])  # fmt: skip
    head = ["GiB", "delay, or copy", "blocks", "MB", "seconds", "MB/s", "n"]
    return table(head, rows) + f"\n\nOver {asked.rounds} rounds: median (lowest-highest)."


def measure(asked: argparse.Namespace) -> None:
    """Run all rounds of each size; what is finished is kept in the file of --out."""
    chance, found = np.random.default_rng(asked.seed), list[Repair]()
    for gigabytes in asked.gigabytes:
        with bed(asked, gigabytes) as made:
            arms: list[tuple[float | None, int]] = [(None, 0)]
            arms += [(delay, blocks) for delay in asked.delays for blocks in asked.blocks]
            for number in range(1, asked.rounds + 1):
                for at in chance.permutation(len(arms)).tolist():
                    journal = made.primary.data.parent / f"journal-{number}-{at}"
                    delay_ms, blocks = arms[int(at)]
                    one = once(made, delay_ms, blocks, number, journal)
                    found.append(one)
                    print(f"{gigabytes:g} GiB, round {number}/{asked.rounds}, {one.what}, "
                          f"{one.blocks:,} blocks: {one.seconds:.2f} s", flush=True)  # fmt: skip
                keep(asked, "repairs", found)
    print(shown(found, asked))


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="clusters are made below it")
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1.0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[4_000, 40_000])
    parser.add_argument("--delays", type=float, nargs="+", default=[0.0, 1.0, 10.0], help="in ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("--bindir", help="of an installed PostgreSQL; else the embedded one")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    return package_exit_code(lambda: measure(asked))


if __name__ == "__main__":
    sys.exit(main())
