"""Controls: faults planted in a cluster that is whole, which the checks of a drill must find.

A drill whose checks cannot fail proves nothing. Planted are a commit that was never made, one that
nobody asked for, an index entry that is missing, and a page that was damaged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pgdyno.drills import checks
from pgdyno.drills.cut import databases_of, made_disk
from pgdyno.drills.ledger import Found, Key, Owed, compared
from pgdyno.drills.load import Load
from pgdyno.drills.survivors import rows_of
from pgdyno.folders import Folder
from pgdyno.model.connection import Connection
from pgdyno.model.drill import AS_WRITTEN, Control
from pgdyno.model.errors import TargetError
from pgdyno.session import own_session
from pgdyno.target.cluster import Cluster
from pgdyno.target.own_target import DISK, RECORD
from pgdyno.trial.fixture import build_of

_NEVER_MADE: Key = (0, 0, -1, -1, -1, -1)
_LINE_POINTERS_AT = 24  # bytes of a page's header
_DAMAGE = b"\xff" * 40
_WITHOUT_ENTRY = """
CREATE TABLE pgdyno_control (number int PRIMARY KEY);
SET allow_system_table_mods = on;
UPDATE pg_index SET indisready = false, indisvalid = false
  WHERE indexrelid = 'pgdyno_control_pkey'::regclass;
INSERT INTO pgdyno_control VALUES (1);
UPDATE pg_index SET indisready = true, indisvalid = true
  WHERE indexrelid = 'pgdyno_control_pkey'::regclass;
"""
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
    with _whole(load) as cluster:
        cluster.start(load.stage.settings, recovers=True)
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
            cluster.start(load.stage.settings)
            damaged = [*checks.readable(databases, binaries, user),
                       *checks.relations(cluster, binaries, user)]  # fmt: skip
        found.append(Control(load.stage.name, "A page of a table is damaged.", _said(damaged)))
    return found


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
    """Write over the line pointers of the page in the middle."""
    base, database, name = path.split("/")
    with disk.into(base) as above, above.into(database) as folder:
        handle = os.open(name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=folder.handle)
        try:
            os.pwrite(handle, _DAMAGE, pages // 2 * page_bytes + _LINE_POINTERS_AT)
        finally:
            os.close(handle)
