"""What the WAL of a window was made of, read from its segments once the window is over.

Segments that the server has recycled by then are not there: what is read is the end of the window,
with the share that it is of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgdyno.model.connection import Connection
from pgdyno.model.description import WrittenTables
from pgdyno.model.errors import TargetError
from pgdyno.model.run import Series
from pgdyno.model.wal import (
    NOTHING_WRITTEN,
    RelationPlace,
    TransactionSums,
    TransactionUse,
    WalRelation,
    WalSummary,
    WindowTransactions,
    WindowWal,
    WorkloadKind,
    WrittenTo,
)
from pgdyno.pages.wal import WalRange, read_wal
from pgdyno.session import own_session
from pgdyno.target.interface import Ready

_POSITION = "wal.bytes"
"""The series whose values are positions in WAL, in bytes."""
_READ_BYTES_MAX = 4 << 30
_RELATIONS_MAX = 40
_KINDS_MAX = 40
_LOW = 0xFFFF_FFFF
_FLUSHED = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint"
# A relation's own name, and that of the table whose rows are in it: of TOAST its table, of a
# partition the root.
_NAMES = """
WITH named AS (
    SELECT c.oid, CASE WHEN n.nspname IN ('public', 'pg_catalog') THEN c.relname
                       ELSE n.nspname || '.' || c.relname END AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
)
SELECT coalesce(nullif(c.reltablespace, 0), d.dattablespace)::bigint,
       CASE WHEN c.relisshared THEN 0 ELSE d.oid END::bigint,
       pg_relation_filenode(c.oid)::bigint, own.name, whole.name
FROM pg_class c
JOIN named own ON own.oid = c.oid
LEFT JOIN pg_class t ON t.reltoastrelid = c.oid AND c.relkind = 't'
JOIN named whole
  ON whole.oid = coalesce(pg_partition_root(coalesce(t.oid, c.oid))::oid, t.oid, c.oid),
pg_database d
WHERE d.datname = current_database() AND pg_relation_filenode(c.oid) IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class _Name:
    own: str  # of the relation
    table: str  # whose rows are in it


def window_wal(
    series: Sequence[Series],
    window_ns: tuple[int, int],
    ready: Ready,
    databases: Sequence[Connection],
    writes: Sequence[WrittenTables] = (),
) -> WindowWal | None:
    """Read the WAL of a window whose load has ended.

    Args:
        series: What was sampled; positions in WAL among it.
        window_ns: Begin and end of the window, as the samples count.
        ready: The server.
        databases: Those that were driven: they have the names of relations.
        writes: What the kinds of transactions of the workload change.

    Returns:
        What it was made of, from the window's first sample to its last; None: the server is not
        ours, or positions were not sampled.

    Raises:
        TargetError: Its segments are gone, or cannot be read.
        psycopg.Error: The server does not answer.
    """
    ends = _positions(series, window_ns)
    if ready.data_folder is None or ends is None:
        return None
    begin, end = ends
    with own_session(ready.connection) as session:
        row = session.execute(_FLUSHED).fetchone()
    assert row is not None
    end = min(end, int(row[0]))  # what is not written yet, is not there to be read
    wanted = max(begin, end - _READ_BYTES_MAX)
    if wanted >= end:
        return None
    found = _read(ready, wanted, end)
    names = _names(databases)
    first = _bytes(found.first_lsn) if found.first_lsn else end
    return WindowWal(
        (end - first) / (end - begin), found.bytes, found.records, found.record_bytes,
        found.images, found.image_bytes, found.commits, found.kinds,
        tuple(_named(found.relations[:_RELATIONS_MAX], names)),
        _transactions(found.transactions, names, writes),
    )  # fmt: skip


def _positions(series: Sequence[Series], window_ns: tuple[int, int]) -> tuple[int, int] | None:
    """Of the first and the last sample within the window."""
    for one in series:
        if one.name == _POSITION:
            inside = np.flatnonzero((one.unix_ns >= window_ns[0]) & (one.unix_ns <= window_ns[1]))
            if inside.size >= 2:
                return int(one.values[inside[0]]), int(one.values[inside[-1]])
    return None


def _read(ready: Ready, begin: int, end: int) -> WalSummary:
    """From the begin on, or from where its segments begin."""
    assert ready.data_folder is not None
    try:
        return read_wal(ready.data_folder, WalRange(_lsn(begin), _lsn(end)))
    except TargetError as error:
        try:
            rest = read_wal(ready.data_folder, WalRange(None, _lsn(end)))
        except TargetError:
            raise error from None
        if rest.first_lsn is None or not begin < _bytes(rest.first_lsn) < end:
            raise
        return rest


def _names(databases: Sequence[Connection]) -> Mapping[RelationPlace, _Name]:
    found = {}
    for database in databases:
        with own_session(database) as session:
            for tablespace, oid, node, own, table in session.execute(_NAMES):
                found[RelationPlace(tablespace, oid, node)] = _Name(own, table)
    return found


def _transactions(
    found: TransactionSums,
    names: Mapping[RelationPlace, _Name],
    writes: Sequence[WrittenTables],
) -> WindowTransactions:
    """Those that changed rows of tables of the same names together, in whichever database."""
    sums: dict[tuple[str, ...], TransactionUse] = {}
    for kind in found.committed:
        tables = {names[one].table if one in names else one.name for one in kind.tables}
        key = tuple(sorted(tables))
        sums[key] = sums.get(key, NOTHING_WRITTEN) + kind.used
    order = sorted(sums, key=lambda key: (-sums[key].bytes, key))
    further = sum((sums[key] for key in order[_KINDS_MAX:]), found.further)
    committed = (
        WorkloadKind(
            tables, tuple(one.kind for one in writes if _bare(one.tables) == _bare(tables)),
            sums[tables],
        )
        for tables in order[:_KINDS_MAX]
    )  # fmt: skip
    return WindowTransactions(
        tuple(committed), further, found.rolled_back, found.unfinished, found.outside
    )


def _bare(tables: Sequence[str]) -> set[str]:
    """Without their schemas, which a workload does not name."""
    return {name.rpartition(".")[2] for name in tables}


def _named(
    relations: Sequence[WalRelation], names: Mapping[RelationPlace, _Name]
) -> Iterator[WrittenTo]:
    for one in relations:
        place = RelationPlace(one.tablespace, one.database, one.relfilenode)
        name = names[place].own if place in names else one.name
        yield WrittenTo(name, one.records, one.bytes, one.images, one.image_bytes)


def _lsn(position: int) -> str:
    return f"{position >> 32:X}/{position & _LOW:X}"


def _bytes(lsn: str) -> int:
    high, _, low = lsn.partition("/")
    return (int(high, 16) << 32) + int(low, 16)
