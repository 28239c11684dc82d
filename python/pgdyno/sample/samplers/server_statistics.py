"""Counters of the server: WAL, checkpoints, buffers, the driven databases, I/O. Versions 12 to 18.

What a version does not have is left out, never shown as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.sample.sampler import Column, Kind, Row, Sampler, Subject


@dataclass(frozen=True, slots=True)
class _Source:
    """One view and the columns taken from it, for a range of versions."""

    first: int  # major
    last: int
    relation: str
    columns: tuple[tuple[str, str, str], ...]  # name, unit, SQL
    kind: Kind = "counter"


_UNARCHIVED = """
    CASE WHEN current_setting('archive_mode') = 'off' THEN 0 ELSE greatest(0, pg_wal_lsn_diff(
      pg_current_wal_lsn(), '0/0')
      - coalesce((SELECT (('x' || substr(name, 9, 8))::bit(32)::bigint * (4294967296 / bytes)
                          + ('x' || substr(name, 17, 8))::bit(32)::bigint + 1) * bytes
                  FROM (SELECT last_archived_wal AS name, setting::bigint AS bytes
                        FROM pg_stat_archiver, pg_settings
                        WHERE pg_settings.name = 'wal_segment_size') last
                  WHERE name ~ '^[0-9A-F]{24}'), 0)) END"""
# A file's name is its timeline, and its number in two parts; the segment after it is not archived.

_SOURCES = (
    _Source(12, 99, "(SELECT 1) lsn", (
        ("wal.bytes", "B", "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"),
    )),
    _Source(14, 17, "pg_stat_wal", (
        ("wal.records", "1", "wal_records"),
        ("wal.fpi", "1", "wal_fpi"),
        ("wal.buffers_full", "1", "wal_buffers_full"),
        ("wal.writes", "1", "wal_write"),
        ("wal.syncs", "1", "wal_sync"),
    )),
    _Source(18, 99, "pg_stat_wal", (
        ("wal.records", "1", "wal_records"),
        ("wal.fpi", "1", "wal_fpi"),
        ("wal.buffers_full", "1", "wal_buffers_full"),
    )),
    _Source(12, 16, "pg_stat_bgwriter", (
        ("checkpoints.timed", "1", "checkpoints_timed"),
        ("checkpoints.requested", "1", "checkpoints_req"),
        ("checkpoints.buffers", "1", "buffers_checkpoint"),
        ("bgwriter.buffers", "1", "buffers_clean"),
        ("bgwriter.maxwritten", "1", "maxwritten_clean"),
        ("backend.buffers", "1", "buffers_backend"),
    )),
    _Source(17, 99, "pg_stat_checkpointer", (
        ("checkpoints.timed", "1", "num_timed"),
        ("checkpoints.requested", "1", "num_requested"),
        ("checkpoints.buffers", "1", "buffers_written"),
    )),
    _Source(17, 99, "pg_stat_bgwriter", (
        ("bgwriter.buffers", "1", "buffers_clean"),
        ("bgwriter.maxwritten", "1", "maxwritten_clean"),
    )),
    _Source(12, 99, "pg_stat_database WHERE datname = ANY (%(databases)s)", (
        ("database.commits", "1", "sum(xact_commit)"),
        ("database.rollbacks", "1", "sum(xact_rollback)"),
        ("database.blocks_read", "1", "sum(blks_read)"),
        ("database.blocks_hit", "1", "sum(blks_hit)"),
        ("database.deadlocks", "1", "sum(deadlocks)"),
        ("database.temp_bytes", "B", "sum(temp_bytes)"),
    )),
    _Source(12, 99, "(SELECT 1) archive", (
        ("archive.behind_bytes", "B", _UNARCHIVED),
    ), "gauge"),
    _Source(12, 99, "pg_stat_replication", (
        ("replication.behind_bytes", "B",
         "greatest(0, max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)))"),
    ), "gauge"),
    _Source(16, 99, "pg_stat_io WHERE backend_type = 'client backend'", (
        ("io.client_reads", "1", "sum(reads)"),
        ("io.client_writes", "1", "sum(writes)"),
    )),
)  # fmt: skip


def sources(major: int) -> Sequence[_Source]:
    """The views that this version has."""
    return [source for source in _SOURCES if source.first <= major <= source.last]


def query(major: int) -> tuple[str, tuple[Column, ...]]:
    """One statement that reads everything, and its columns in order."""
    parts, columns = [], []
    for source in sources(major):
        for name, unit, sql in source.columns:
            parts.append(f"(SELECT ({sql})::float8 FROM {source.relation})")  # noqa: S608
            columns.append(Column(name, unit, source.kind))
    return "SELECT " + ",\n       ".join(parts), tuple(columns)


def sampler(subject: Subject) -> Sampler | None:
    """Counters of the server; None where there is no session to ask it."""
    if (session := subject.session) is None:
        return None
    text, columns = query(session.info.server_version // 10_000)
    named = {"databases": list(subject.databases)}

    def take() -> Row:
        row = session.execute(text.encode(), named, prepare=True).fetchone()
        assert row is not None
        values = zip(columns, row, strict=True)
        return {column.name: float(value or 0.0) for column, value in values}

    return Sampler("server statistics", columns, take)
