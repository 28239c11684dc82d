"""WAL of real servers: record by record what `pg_waldump` of the same version says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

import pgdyno
from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.model.wal import WalBlock, WalRecord, WalSummary
from pgdyno.pages.wal import WalRange, read_wal
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb
from tests.cluster.conftest import TARGETS
from tests.cluster.waldump import Dumped, DumpedBlock, dumped, place
from tests.reachable import reachable_folder
from tests.tally import count

pytestmark = pytest.mark.cluster
SETTINGS = {
    "wal_level": "logical", "max_prepared_transactions": "5", "wal_keep_size": "1GB",
    "autovacuum": "off", "fsync": "off", "wal_compression": "off", "max_replication_slots": "4",
}  # fmt: skip
TABLES = """
CREATE TABLE t (id int PRIMARY KEY, n int, w text, p point, a int[], r int4range);
CREATE INDEX ON t USING hash (n);
CREATE INDEX ON t USING gin (a);
CREATE INDEX ON t USING gist (p);
CREATE INDEX ON t USING spgist (w);
CREATE INDEX ON t USING brin (id) WITH (pages_per_range = 2);
CREATE INDEX ON t USING gist (r);
INSERT INTO t SELECT i, i % 97, 'w' || i * 7919 % 1000, point(i % 100, i / 100),
  ARRAY[i % 10, i % 100, i], int4range(i, i + 5) FROM generate_series(1, 4000) i;
CREATE UNLOGGED TABLE u AS SELECT 1 AS one;
CREATE SEQUENCE s;
SELECT nextval('s') FROM generate_series(1, 100);
CREATE MATERIALIZED VIEW m AS SELECT n, count(*) FROM t GROUP BY n;
"""
CHANGES = """
UPDATE t SET n = n + 1, w = w || 'x' WHERE id % 3 = 0;
UPDATE t SET p = point(id, id) WHERE id % 7 = 0;
DELETE FROM t WHERE id % 5 = 0;
VACUUM t;
SELECT count(*) FROM t WHERE n > 3;
INSERT INTO t SELECT i, i, 'again', point(1, 2), ARRAY[1], int4range(i, i + 1)
  FROM generate_series(10001, 11000) i;
VACUUM (FREEZE) t;
REFRESH MATERIALIZED VIEW m;
REINDEX TABLE t;
ALTER TABLE t ADD COLUMN z bigint DEFAULT 5;
CLUSTER t USING t_pkey;
CREATE TABLE c AS SELECT i, repeat('bulk', 300) AS b FROM generate_series(1, 500) i;
TRUNCATE c;
DROP TABLE c;
SELECT pg_logical_emit_message(true, 'told', 'within');
SELECT pg_logical_emit_message(false, 'told', repeat('large', 60000));
SELECT pg_create_restore_point('here');
ALTER TABLE u SET LOGGED;
ANALYZE t;
"""
TRANSACTIONS = """
BEGIN; INSERT INTO t (id) VALUES (-1); SAVEPOINT a; INSERT INTO t (id) VALUES (-2);
  ROLLBACK TO a; PREPARE TRANSACTION 'kept';
COMMIT PREPARED 'kept';
BEGIN; INSERT INTO t (id) VALUES (-3); PREPARE TRANSACTION 'lost';
ROLLBACK PREPARED 'lost';
BEGIN; SELECT * FROM t WHERE id = -1 FOR UPDATE; ROLLBACK;
BEGIN; SELECT * FROM t WHERE id = -1 FOR SHARE; CREATE TABLE gone (i int); ROLLBACK;
"""
DATABASES = (
    "CREATE DATABASE copied STRATEGY file_copy",
    "CREATE DATABASE logged STRATEGY wal_log",
    "DROP DATABASE copied",
)

VERSIONS = ("embedded-18", pytest.param("debian-15", marks=pytest.mark.wide))


@dataclass(frozen=True)
class Written:
    """A stopped cluster, and the range of WAL that was written to it."""

    binaries: Binaries
    data: Path
    first: str
    last: str

    @property
    def wal(self) -> Path:
        """Its segments."""
        return self.data / "pg_wal"


def statements(text: str) -> Iterator[str]:
    """One statement after the other."""
    yield from (one for one in text.split(";\n") if one.strip())


@contextmanager
def session(cluster: Cluster) -> Iterator[psycopg.Connection]:
    """One that commits each statement."""
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as opened:
        yield opened


def compressions(asked: psycopg.Connection) -> list[str]:
    """Ways to compress images that this build has."""
    row = asked.execute(
        "SELECT enumvals FROM pg_settings WHERE name = 'wal_compression'"
    ).fetchone()
    assert row is not None
    return [one for one in row[0] if one in ("pglz", "lz4", "zstd")]


def work(asked: psycopg.Connection, compression: str) -> None:
    """Something of everything, images compressed in one way."""
    asked.execute(f"SET wal_compression = {compression}")
    asked.execute("CHECKPOINT")
    for one in statements(CHANGES):
        asked.execute(one)
    for one in statements(TRANSACTIONS):
        for part in one.split("; "):
            asked.execute(part)
    asked.execute("DELETE FROM t WHERE id > 10000 OR id < 0")
    asked.execute("ALTER TABLE t DROP COLUMN z")
    asked.execute("DROP TABLE u")
    asked.execute("CREATE UNLOGGED TABLE u AS SELECT 1 AS one")
    with asked.cursor() as cursor, cursor.copy("COPY t (id) FROM STDIN") as copy:
        for number in range(20_000, 21_000):
            copy.write_row((number,))
    asked.execute("DELETE FROM t WHERE id >= 20000")
    asked.execute("SELECT pg_switch_wal()")


def place_now(asked: psycopg.Connection) -> str:
    """The end of the WAL, flushed."""
    row = asked.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return str(row[0])


@pytest.fixture(scope="module", params=VERSIONS)
def written(request: pytest.FixtureRequest) -> Iterator[Written]:
    """A cluster with small segments, its work, a crash on the way, and a clean end."""
    for folder in reachable_folder("wal"):
        user = postgres_user()
        binaries = find_binaries(TARGETS[request.param], user)
        data = folder / "data"
        further = ("--no-sync", "--wal-segsize=1", "--data-checksums")
        initdb(binaries, data, user, further)
        cluster = Cluster(binaries, data, user, "socket")
        origin = Origin(OriginKind.PLAN, "test")
        try:
            cluster.start([Setting(name, value, origin) for name, value in SETTINGS.items()])
            with session(cluster) as asked:
                first = place_now(asked)
                for one in statements(TABLES):
                    asked.execute(one)
                asked.execute("SELECT pg_create_logical_replication_slot('l', 'test_decoding')")
                for compression in ("off", *compressions(asked)):
                    work(asked, compression)
            cluster.crash()
            with session(cluster) as asked:
                for one in DATABASES:
                    asked.execute(one)
                asked.execute("CHECKPOINT")
                last = place_now(asked)
            cluster.stop(clean=True)
            yield Written(binaries, data, first, last)
        finally:
            cluster.close()


def block(one: WalBlock) -> DumpedBlock:
    """A block reference as `pg_waldump` prints it."""
    image = None
    if one.image_bytes is not None:
        image = (one.is_applied, one.hole_at, one.hole_bytes, one.image_bytes, one.compression)
    relation = f"{one.tablespace}/{one.database}/{one.relfilenode}"
    return DumpedBlock(one.id, relation, one.fork, one.block, image)


def assert_same(ours: WalRecord, theirs: Dumped) -> None:
    said = f"{ours.lsn} {ours.manager} {ours.kind}"
    assert (place(ours.lsn), place(ours.prev_lsn)) == (theirs.lsn, theirs.prev), said
    assert (ours.manager, ours.xid) == (theirs.manager, theirs.xid), said
    assert theirs.what.split(" ")[0] == ours.kind, said
    assert (ours.bytes, ours.image_bytes) == (theirs.bytes, theirs.image_bytes), said
    assert [block(one) for one in ours.blocks] == theirs.blocks, said


def read(one: Written) -> tuple[list[WalRecord], WalSummary]:
    found: list[WalRecord] = []
    wanted = WalRange(one.first, one.last)
    return found, read_wal(one.data, wanted, on_record=found.append)


def test_every_record_is_that_of_pg_waldump(written: Written) -> None:
    ours, summary = read(written)
    theirs = list(
        dumped(written.binaries.program("pg_waldump"), written.wal, written.first, written.last)
    )

    assert [place(one.lsn) for one in ours] == [one.lsn for one in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert_same(mine, other)
    managers = {one.manager for one in theirs}
    assert managers >= {
        "XLOG", "Transaction", "Storage", "Database", "Standby", "Heap2", "Heap", "Btree", "Hash",
        "Gin", "Gist", "Sequence", "SPGist", "BRIN", "LogicalMessage",
    }  # fmt: skip
    images = Counter(one.image[4] for each in theirs for one in each.blocks if one.image)
    assert {"pglz", None} <= set(images), "compressed and plain ones were written"
    assert max(one.bytes for one in theirs) > 200_000, "a record of many pages"
    assert summary.records == len(theirs)
    assert summary.record_bytes == sum(one.bytes for one in theirs)
    assert summary.image_bytes == sum(one.image_bytes for one in theirs)
    count(f"records of WAL of PostgreSQL {summary.major}, ours beside pg_waldump's", "alike",
          len(theirs))  # fmt: skip


@pytest.mark.wide
def test_the_sums_are_those_of_the_records(written: Written) -> None:
    whole, _ = read(written)
    # From the middle on blocks are changed in place that had their images before.
    ours, summary = read(replace(written, first=whole[len(whole) // 2].lsn))
    kinds = Counter(f"{one.manager} {one.kind}" for one in ours)
    first: dict[tuple[int, int, int, str, int], str] = {}
    for record in ours:
        for one in record.blocks:
            touch = "init" if one.is_init else "plain"
            touch = "image" if one.image_bytes is not None and one.is_applied else touch
            key = (one.tablespace, one.database, one.relfilenode, one.fork, one.block)
            first.setdefault(key, touch)

    assert {f"{one.manager} {one.kind}": one.records for one in summary.kinds} == kinds
    touches = Counter(first.values())
    assert min(touches[one] for one in ("image", "init", "plain")) > 0
    assert touches == {
        "image": summary.blocks_image, "init": summary.blocks_init, "plain": summary.blocks_plain,
    }  # fmt: skip
    with_blocks = sum(one.bytes for one in ours if one.blocks)
    assert sum(one.bytes for one in summary.relations) == with_blocks
    assert sum(one.blocks for one in summary.relations) == len(first)
    assert summary.commits == kinds["Transaction COMMIT"] + kinds["Transaction COMMIT_PREPARED"]


_ENDED = re.compile(r"(COMMIT|ABORT)(?:_PREPARED)? (?:(\d+): )?(?:.*; subxacts:((?: \d+)+))?")
_ROWS = re.compile(r"(INSERT|DELETE|UPDATE|HOT_UPDATE)(\+INIT)?$")


def by_transaction(records: Iterable[Dumped]) -> tuple[dict[tuple[str, ...], list[int]], int]:
    """Commits and bytes by the tables whose rows were changed; and bytes that were rolled back."""
    wrote: defaultdict[int, int] = defaultdict(int)
    tables: defaultdict[int, set[str]] = defaultdict(set)
    committed: defaultdict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    rolled_back = 0
    for one in records:
        found = _ENDED.match(one.what) if one.manager == "Transaction" else None
        xid = int(found[2]) if found and found[2] else one.xid
        wrote[xid] += one.bytes
        kind = one.what.split(" ")[0]
        if (one.manager == "Heap" and _ROWS.match(kind)) or kind.startswith("MULTI_INSERT"):
            tables[xid].add(one.blocks[0].relation)
        if found is None:
            continue
        each = [xid, *map(int, (found[3] or "").split())]
        bytes_ = sum(wrote.pop(one, 0) for one in each)
        names = set().union(*(tables.pop(one, set()) for one in each))
        if found[1] == "ABORT":
            rolled_back += bytes_
            continue
        sums = committed[tuple(sorted(names))]
        sums[0] += 1
        sums[1] += bytes_
    return dict(committed), rolled_back


def test_bytes_of_transactions_are_those_of_pg_waldumps_records(written: Written) -> None:
    _, summary = read(written)
    program = written.binaries.program("pg_waldump")
    committed, rolled_back = by_transaction(
        dumped(program, written.wal, written.first, written.last)
    )

    sums = summary.transactions
    assert {
        tuple(sorted(table.name for table in one.tables)): [one.used.transactions, one.used.bytes]
        for one in sums.committed
    } == committed
    assert sums.rolled_back.bytes == rolled_back > 0
    assert sums.further.records == 0 < sums.outside.bytes
    others = (sums.further, sums.rolled_back, sums.unfinished, sums.outside)
    assert summary.record_bytes == sum(
        one.bytes for one in (*(kind.used for kind in sums.committed), *others)
    )
    assert summary.commits == sum(one.used.transactions for one in sums.committed)


def test_without_a_range_all_is_read_up_to_the_end(written: Written) -> None:
    whole = pgdyno.wal(written.wal)
    part = pgdyno.wal(written.data, written.last)

    assert whole.ended is not None
    assert part.end_lsn == whole.end_lsn
    assert [one.kind for one in part.kinds if one.manager == "XLOG"] == ["CHECKPOINT_SHUTDOWN"]
    assert whole.records > part.records


def test_what_is_asked_for_in_vain_is_said(written: Written, tmp_path: Path) -> None:
    segments = sorted(one.name for one in written.wal.iterdir() if len(one.name) == 24)
    with pytest.raises(TargetError, match="is missing, which holds FF/0; there is WAL of 0/"):
        pgdyno.wal(written.wal, "FF/0", "FF/10")
    with pytest.raises(TargetError, match='"0-1" is no place in the WAL'):
        pgdyno.wal(written.wal, "0-1")
    with pytest.raises(TargetError, match="there is no segment of 1048576 bytes on timeline 9"):
        pgdyno.wal(written.wal, timeline=9)
    with pytest.raises(TargetError, match=r"WAL ends in \w{24} before"):
        pgdyno.wal(written.wal, written.first, f"0/{place_of(segments[-1]) + (1 << 20):X}")
    with pytest.raises(TargetError, match="holds no WAL: no file has a name of 24"):
        pgdyno.wal(written.data / "base")
    copy = tmp_path / "wal"
    shutil.copytree(written.wal, copy)
    middle = next(name for name in segments if place_of(name) > place(written.first))
    (copy / middle).unlink()
    with pytest.raises(TargetError, match=f"segment {middle} is missing"):
        pgdyno.wal(copy, written.first, written.last)
    (copy / middle).write_bytes(b"garbage" * 1000)
    with pytest.raises(TargetError, match=f"WAL ends in {middle} before .* file has 7000 bytes"):
        pgdyno.wal(copy, written.first, written.last)
    (copy / segments[0]).write_bytes(b"garbage" * 1000)
    with pytest.raises(TargetError, match=f"{segments[0]}: its first page begins with 6167"):
        pgdyno.wal(copy)


def place_of(name: str) -> int:
    """Where a segment of 1 MiB begins."""
    return int(name[8:16], 16) << 32 | int(name[16:], 16) << 20


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
def test_root_reads_nothing_through_a_link_of_the_owners(written: Written, folder: Path) -> None:
    user = postgres_user()
    secret = folder / "secret"
    theirs = folder / "theirs"
    theirs.mkdir()
    names = sorted(one.name for one in written.wal.iterdir() if len(one.name) == 24)
    shutil.copy(written.wal / names[0], secret)
    secret.chmod(0o600)
    (theirs / names[0]).symlink_to(secret)
    os.chown(theirs, user.uid, user.gid)
    with pytest.raises(TargetError, match=names[0]):
        pgdyno.wal(theirs)
    (theirs / names[0]).unlink()
    os.link(secret, theirs / names[0])
    with pytest.raises(TargetError, match="belongs to user root, and others than root can change"):
        pgdyno.wal(theirs)


def command(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno", "wal", *words],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_the_command_tells_what_a_range_was_made_of(written: Written) -> None:
    window = f"{written.first}..{written.last}"
    as_json = json.loads(command(str(written.data), window, "--format", "json", folder=Path("/")))
    text = command(window, folder=written.wal)

    _, summary = read(written)
    assert as_json["records"] == summary.records
    assert len(as_json["relations"]) == len(summary.relations)
    assert f"PostgreSQL {summary.major}, timeline 1, {summary.first_lsn} to" in text
    assert "Heap INSERT" in text
    assert len(as_json["transactions"]["committed"]) == len(summary.transactions.committed)
    assert "transactions that changed rows of" in text
    assert "(rolled back)" in text
    assert summary.relations[0].name in text
