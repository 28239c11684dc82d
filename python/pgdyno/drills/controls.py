"""Controls: faults planted in a cluster that is whole, which the checks of a drill must find.

A drill whose checks cannot fail proves nothing. Planted are a commit that was never made, one that
nobody asked for, an index entry that is missing, one that was left, a wrong visibility map, a
map of free space that cannot be read, and a damaged page.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pgdyno.drills import checks
from pgdyno.drills.cut import databases_of, made_disk
from pgdyno.drills.free_space import free_space
from pgdyno.drills.guarded import THROWN_AWAY
from pgdyno.drills.index_entries import index_entries
from pgdyno.drills.ledger import Found, Key, Owed, compared
from pgdyno.drills.load import Load
from pgdyno.drills.survivors import rows_of
from pgdyno.folders import Folder
from pgdyno.guard.relations import opened
from pgdyno.model.connection import Connection
from pgdyno.model.drill import AS_WRITTEN, Control
from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.session import own_session
from pgdyno.target.cluster import Cluster
from pgdyno.target.own_target import DISK, RECORD
from pgdyno.trial.fixture import build_of

_NEVER_MADE: Key = (0, 0, -1, -1, -1, -1)
_HEADER_BYTES = 24  # of a page: the bits of a visibility map follow
_BITS = b"\x03"  # of the first block: all see it, and it is frozen
_DELETED = (
    # Else VACUUM may come before the commit is flushed, and then says of no row that all see it.
    "SET synchronous_commit = on",
    "CREATE TABLE pgdyno_deleted WITH (autovacuum_enabled = off) AS SELECT 1 AS number",
    "VACUUM pgdyno_deleted",
    "DELETE FROM pgdyno_deleted",
)
_WITH_SPACE = (
    "CREATE TABLE pgdyno_space AS SELECT * FROM generate_series(1, 5000) AS number",
    "VACUUM pgdyno_space",
)
_IGNORED = Setting("ignore_checksum_failure", "on", Origin(OriginKind.TARGET, "a fault is planted"))
_DAMAGE = b"\xff" * 52  # the rest of the header, and ten line pointers
_ROOM_AT = 12  # of a page: where its free room begins and ends
_WITHOUT_ENTRY = """
CREATE TABLE pgdyno_control (number int PRIMARY KEY);
SET allow_system_table_mods = on;
UPDATE pg_index SET indisready = false, indisvalid = false
  WHERE indexrelid = 'pgdyno_control_pkey'::regclass;
INSERT INTO pgdyno_control VALUES (1);
UPDATE pg_index SET indisready = true, indisvalid = true
  WHERE indexrelid = 'pgdyno_control_pkey'::regclass;
"""
_NOT_KEPT = """
UPDATE pg_index SET indisready = {0}, indisvalid = {0} WHERE indexrelid = 'pgdyno_left_n'::regclass
"""
ENTRY_LEFT = (  # its row goes while nobody keeps the index, and another one takes its place
    "CREATE TABLE pgdyno_left (number int)",
    "CREATE INDEX pgdyno_left_n ON pgdyno_left (number)",
    "INSERT INTO pgdyno_left VALUES (1)",
    "SET allow_system_table_mods = on",
    _NOT_KEPT.format("false"),
    "DELETE FROM pgdyno_left",
    "VACUUM (TRUNCATE off) pgdyno_left",
    "INSERT INTO pgdyno_left VALUES (2)",
    _NOT_KEPT.format("true"),
    "UPDATE pg_class SET relhasindex = true WHERE oid = 'pgdyno_left'::regclass",  # VACUUM saw none
)
_LARGEST = """
SELECT pg_relation_filepath(oid), pg_relation_size(oid) / current_setting('block_size')::int,
       current_setting('block_size')::int
FROM pg_class WHERE relkind = 'r' AND oid >= 16384 ORDER BY pg_relation_size(oid) DESC LIMIT 1
"""


def planted(load: Load) -> list[Control]:
    """Plant each fault in what a crash at the end of a load left, and see whether it is found.

    Raises:
        TargetError: The server does not come back from that.
        psycopg.Error: A fault cannot be planted.
    """
    target, build = load.bench.target, build_of(load.stage)
    binaries, user = target.binaries_of(build), target.user
    settings = [*load.stage.settings, THROWN_AWAY]
    with _whole(load) as cluster:
        cluster.start(settings, recovers=True)
        databases = databases_of(load, cluster)
        rows = rows_of(databases, load.bench.described, load.begun_unix_us)
        owed = load.ledger.at(load.ends_ns)
        base = compared(owed, rows)
        found = [
            Control(load.stage.name, "The ledger has a commit that was never made.",
                    _lost(base, compared(_with_one_more(owed), rows))),
            Control(load.stage.name, "The ledger lacks a commit that was made.",
                    _unasked(base, compared(_with_one_less(owed, rows), rows))),
        ]  # fmt: skip
        if checks.relations(cluster, binaries, user):
            raise TargetError(
                "a cluster that has only crashed is not whole: nothing can be planted"
            )
        with own_session(databases[0]) as session:
            session.execute(_WITHOUT_ENTRY)
            if checks.has_amcheck(binaries):
                missed = checks.relations(cluster, binaries, user)
                found.append(Control(load.stage.name, "An index lacks an entry of its table.",
                                     _said(missed)))  # fmt: skip
            # What is left of one fault would be found for the next.
            session.execute("DROP TABLE pgdyno_control")
            for statement in ENTRY_LEFT:
                session.execute(statement)
            wrong = index_entries(databases[:1])
            found.append(Control(load.stage.name, "An index has an entry of a row that is gone.",
                                 _said(wrong)))  # fmt: skip
            session.execute("DROP TABLE pgdyno_left")
        found.append(_wrongly_visible(load, cluster, databases))
        found.append(_without_space(load, cluster, databases))
        where = _largest(databases[0])
        summed = checks.summed_files(cluster)
        cluster.stop(clean=True)
        with target.trial_folder.into(DISK) as disk:
            _damage(disk, *where)
            damaged = (
                checks.checksums(cluster, disk, summed, binaries, user)
                if summed is not None
                else []
            )
        if not damaged:
            cluster.start(settings)
            damaged = [*checks.readable(databases, binaries, user),
                       *checks.relations(cluster, binaries, user)]  # fmt: skip
        found.append(Control(load.stage.name, "A page of a table is damaged.", _said(damaged)))
    return found


def _made(database: Connection, statements: Sequence[str], table: str) -> str:
    """Carry statements out; the first file of a table that they make."""
    with own_session(database) as session:
        for statement in statements:
            session.execute(statement.encode())
        row = session.execute("SELECT pg_relation_filepath(%s)", (table,)).fetchone()
    assert row is not None
    return str(row[0])


def _wrongly_visible(load: Load, cluster: Cluster, databases: list[Connection]) -> Control:
    """Let a map say that all see a page with a row that nobody sees; the server runs on after it.

    Its checksum is wrong then, which is not what is looked for: it is ignored, and put right.
    """
    settings = [*load.stage.settings, THROWN_AWAY]
    path = f"{_made(databases[0], _DELETED, 'pgdyno_deleted')}_vm"
    cluster.stop(clean=True)
    with load.bench.target.trial_folder.into(DISK) as disk:
        before = _put(disk, path, _BITS, _HEADER_BYTES)
        cluster.start([*settings, _IGNORED])
        missed = checks.visibility(databases)
        cluster.stop(clean=True)
        _put(disk, path, before, _HEADER_BYTES)
    cluster.start(settings)
    return Control(load.stage.name, "A visibility map says that all see a deleted row.",
                   _said(missed))  # fmt: skip


def _without_space(load: Load, cluster: Cluster, databases: list[Connection]) -> Control:
    """Let nobody read a map of free space; the server runs on after it."""
    settings = [*load.stage.settings, THROWN_AWAY]
    path = f"{_made(databases[0], _WITH_SPACE, 'pgdyno_space')}_fsm"
    cluster.stop(clean=True)
    with (
        load.bench.target.trial_folder.into(DISK) as disk,
        _planted(disk, path, writes=False) as handle,
    ):
        before = stat.S_IMODE(os.fstat(handle).st_mode)
        os.fchmod(handle, 0)
        cluster.start(settings)
        missed = free_space(databases[:1])
        cluster.stop(clean=True)
        os.fchmod(handle, before)
    cluster.start(settings)
    with own_session(databases[0]) as session:
        session.execute("DROP TABLE pgdyno_space")
    return Control(load.stage.name, "A map of free space cannot be read.", _said(missed))


@contextmanager
def _whole(load: Load) -> Iterator[Cluster]:
    """A server that does not run yet, on all that the load wrote."""
    target = load.bench.target
    folder = target.trial_folder
    made_disk(folder, RECORD, DISK, load.ends_ns, 1, AS_WRITTEN)
    cluster = target.server_on(DISK, build_of(load.stage))
    try:
        yield cluster
    finally:
        cluster.close()
        folder.remove_folder(DISK)


def _with_one_more(owed: Owed) -> Owed:
    return replace(owed, acknowledged={**owed.acknowledged, _NEVER_MADE: [(owed.instant_ns, 1)]})


def _with_one_less(owed: Owed, rows: Mapping[Key, int]) -> Owed:
    """One that left rows is forgotten; of several with its key, all."""
    key = next(key for key, there in rows.items() if there and key in owed.acknowledged)
    return replace(owed, acknowledged={**owed.acknowledged, key: []})


def _lost(base: Found, found: Found) -> str | None:
    return "A commit more is gone." if found.lost == base.lost + 1 else None


def _unasked(base: Found, found: Found) -> str | None:
    return "Rows more that nobody asked for." if found.unasked > base.unasked else None


def _said(sentences: list[str]) -> str | None:
    return sentences[0] if sentences else None


def _largest(database: Connection) -> tuple[str, int, int]:
    """File of the largest table, its pages, bytes of a page."""
    with own_session(database) as session:
        row = session.execute(_LARGEST).fetchone()
    assert row is not None, "what was loaded has a table"
    path, pages, page_bytes = row
    return str(path), int(pages), int(page_bytes)


def _damage(disk: Folder, path: str, pages: int, page_bytes: int) -> None:
    """Write over the page in the middle, from what it says of its own room on.

    Line pointers alone may come to mean rows that were deleted, which nobody misses where pages
    have no checksums.
    """
    _put(disk, path, _DAMAGE, pages // 2 * page_bytes + _ROOM_AT)


@contextmanager
def _planted(disk: Folder, path: str, *, writes: bool) -> Iterator[int]:
    """A relation's file, in which there is to be a fault."""
    with opened(disk, path, writes=writes) as handle:
        if handle is None:
            raise TargetError(f"{disk.path / path} is gone, in which a fault was to be planted")
        yield handle


def _put(disk: Folder, path: str, data: bytes, at: int) -> bytes:
    """Write over bytes of a relation's file; returns those that were there."""
    with _planted(disk, path, writes=True) as handle:
        before = os.pread(handle, len(data), at)
        os.pwrite(handle, data, at)
    return before
