"""A primary that crashed and its standby, for tests that repair the one from the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

import pgdyno
from pgdyno.folders import Folder
from pgdyno.guard.relations import opened
from pgdyno.model.repair import RepairReport
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.pages.redo import Crashed, read_redo
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster
from pgdyno.target.standby import Standby
from tests.cluster.conftest import TARGETS, cluster_apart

_TEST = Origin(OriginKind.PLAN, "a test")
OFF = (
    Setting("full_page_writes", "off", _TEST),
    Setting("autovacuum", "off", _TEST),  # else what the standby has changes at its own time
)
ROWS = 20_000
HALF = 4096


@dataclass(frozen=True)
class Pair:
    """A primary that crashed, and its standby, which lives."""

    primary: Cluster
    standby: Standby
    journals: Path

    @property
    def guard(self) -> pgdyno.Guard:
        return pgdyno.Guard(self.primary.data, self.conninfo)

    def repair(self, **keys: Any) -> RepairReport:
        return self.guard.repair(journals=self.journals, **keys)

    @property
    def conninfo(self) -> str:
        return self.standby.cluster.connection().shown()

    def crashed(self) -> Crashed:
        with Folder.hold(self.primary.data) as data:
            return read_redo(data)

    def content(self) -> tuple[int, int]:
        """Rows and their sum on the primary, by the table and by its index."""
        return content_of(self.primary)


def content_of(cluster: Cluster) -> tuple[int, int]:
    """Rows and their sum, by the table and by its index."""
    row = rows(
        cluster,
        "SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(v) FROM t",
    )[0]
    by_index = rows(
        cluster,
        "SET enable_seqscan = off; SELECT count(*), sum(v) FROM t WHERE i > 0",
    )[0]
    assert row == by_index
    return row[0], row[1]


def rows(cluster: Cluster, query: str) -> list[tuple[int, ...]]:
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        *firsts, last = query.split("; ")
        for one in firsts:
            session.execute(one.encode())
        return session.execute(last.encode()).fetchall()


def execute(cluster: Cluster, *statements: str) -> None:
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        for one in statements:
            session.execute(one.encode())


@contextmanager
def pair_of(version: str, folder: Path, settings: Sequence[Setting] = OFF) -> Iterator[Pair]:
    """A primary with a table and full pages off, and its standby, which streams."""
    binaries: Binaries = find_binaries(TARGETS[version], postgres_user())
    with cluster_apart(version, "socket") as primary:
        primary.stop(clean=True)
        primary.start(settings)
        execute(
            primary,
            f"CREATE TABLE t AS SELECT i, 0 AS v FROM generate_series(1, {ROWS}) AS i",
            "CREATE UNIQUE INDEX ON t (i)",
            "VACUUM ANALYZE t",
            "CHECKPOINT",
        )
        standby = Standby(primary, binaries, postgres_user())
        try:
            standby.start()
            yield Pair(primary, standby, folder / "journals")
        finally:
            standby.close()


def crash(pair: Pair, *, unseen: str | None = None, then: str | None = None) -> tuple[int, int]:
    """Change every tenth row since a checkpoint, and end at once; what the table holds then.

    What is `unseen` is done before the checkpoint, which the standby has not seen either then; what
    is done `then`, before the change.
    """
    if unseen is not None:
        pair.standby.stop(clean=True)
        execute(pair.primary, unseen)
    execute(pair.primary, "CHECKPOINT", *([then] if then else []))
    execute(pair.primary, "UPDATE t SET v = i WHERE i % 10 = 0")
    content = pair.content()
    lsn = str(rows(pair.primary, "SELECT pg_current_wal_flush_lsn()")[0][0])
    if unseen is not None:
        pair.primary.stop(clean=False)
        pair.standby.cluster.start([], recovers=True)
        return content
    pair.standby.wait_replayed(lsn)
    pair.primary.stop(clean=False)
    return content


def torn(pair: Pair) -> Sequence[tuple[str, int]]:
    """Overwrite the second half of each third block that redo of the primary reads; which."""
    return torn_at(pair.primary.data)


def torn_at(path: Path) -> Sequence[tuple[str, int]]:
    """The same of any data directory."""
    found = []
    with Folder.hold(path) as data:
        needs = read_redo(data).needs
        assert needs is not None
        for file in needs.files:
            with opened(data, file.path, writes=True) as handle:
                if handle is None:
                    continue
                there = os.fstat(handle).st_size // 8192
                for first, count in file.runs:
                    for block in range(first, min(first + count, there)):
                        if block % 3 == 0:
                            os.pwrite(handle, b"\xee" * HALF, block * 8192 + HALF)
                            found.append((file.path, block))
    return found
