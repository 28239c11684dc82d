"""Counters of the server: WAL, checkpoints, buffers, the driven databases, I/O. Versions 12 to 18.

What a version does not have is left out, never shown as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from pgdyno.sample.sampler import Column, Row, Sampler


@dataclass(frozen=True, slots=True)
class _Source:
    """One view and the columns taken from it, for a range of versions."""

    first: int  # major
    last: int
    relation: str
    columns: tuple[tuple[str, str, str], ...]  # name, unit, SQL


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
            columns.append(Column(name, unit))
    return "SELECT " + ",\n       ".join(parts), tuple(columns)


def server_stats_sampler(
    session: psycopg.Connection[tuple[float, ...]], major: int, databases: Sequence[str]
) -> Sampler:
    """Counters over a session of its own, which must be in autocommit mode."""
    text, columns = query(major)
    named = {"databases": list(databases)}

    def take() -> Row:
        row = session.execute(text.encode(), named, prepare=True).fetchone()
        assert row is not None
        values = zip(columns, row, strict=True)
        return {column.name: float(value or 0.0) for column, value in values}

    return Sampler("server statistics", columns, take)
