"""Counters of the server: WAL, checkpoints, buffers, the driven databases, I/O. Versions 12 to 18.

What a version does not have, what the server does not count with its settings and what it does not
show to our role has no series and is named as missing, never shown as zero; without standbys, or an
archive, there is no sample of how far they are. Sessions hand in what they counted when they go
idle, at most once a second, and a transaction that runs on is not in it.

What the server counts of the driven databases holds what sessions that look on did there. Of it
their transactions are told apart: `database.commits` less `database.own_commits` is what others
committed, which is the load and autovacuum; likewise rollbacks. Where these series are not there,
or end, `database.commits` is the most that it can have been: see `own_transactions`.

Source: PostgreSQL, "The Cumulative Statistics System".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from pgdyno.model.server_views import (
    DATA_TIMES,
    PARALLEL_WORKERS,
    SESSION_TIMES,
    STATE_TIMES,
    WAL_TIMES,
)
from pgdyno.sample.lacking import major_of, not_before, reads_all_statistics, switched_off
from pgdyno.sample.own_transactions import COLUMNS, OwnTransactions, own_transactions
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Kind, Missing, Row, Sampler, Subject


@dataclass(frozen=True, slots=True)
class _Source:
    """One view and the columns taken from it, for a range of versions."""

    first: int  # major
    last: int
    relation: str
    columns: tuple[tuple[str, str, str], ...]  # name, unit, SQL
    kind: Kind = "counter"
    setting: str = ""  # boolean, without which it is not counted
    of_others: bool = False  # shown to members of pg_monitor alone: see `server_replication`
    what: str = ""  # it is named as, where it is missing


_UNARCHIVED = """
    CASE WHEN current_setting('archive_mode') <> 'off' THEN
      (SELECT greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')
         - (('x' || substr(name, 9, 8))::bit(32)::bigint * (4294967296 / bytes)
            + ('x' || substr(name, 17, 8))::bit(32)::bigint + done) * bytes)
       FROM (SELECT last_archived_wal AS name, 1 AS done FROM pg_stat_archiver
             UNION ALL
             SELECT last_failed_wal, 0 FROM pg_stat_archiver
             WHERE last_archived_time IS NULL OR last_failed_time > last_archived_time) last,
            (SELECT setting::bigint AS bytes FROM pg_settings
             WHERE pg_settings.name = 'wal_segment_size') size
       WHERE name ~ '^[0-9A-F]{24}' ORDER BY done DESC LIMIT 1) END"""
# A file's name is its timeline, and its number in two parts. The segment after the last archived
# one is not archived, nor is the one that failed last. Where neither is known, as after a reset of
# statistics, or where the last was a timeline's history, nobody knows how much is not.

_ON = "SELECT name FROM pg_settings WHERE name = ANY (%s) AND setting = 'on'"
_DRIVEN = "pg_stat_database WHERE datname = ANY (%(databases)s)"
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
    ), what="WAL records, full-page images and syncs"),
    _Source(14, 17, "pg_stat_wal", (
        ("wal.write_s", "s", "wal_write_time / 1000"),
        ("wal.sync_s", "s", "wal_sync_time / 1000"),
    ), setting="track_wal_io_timing", what=WAL_TIMES),
    _Source(18, 99, "pg_stat_wal", (
        ("wal.records", "1", "wal_records"),
        ("wal.fpi", "1", "wal_fpi"),
        ("wal.buffers_full", "1", "wal_buffers_full"),
    )),
    _Source(12, 16, "pg_stat_bgwriter", (
        ("checkpoints.timed", "1", "checkpoints_timed"),
        ("checkpoints.requested", "1", "checkpoints_req"),
        ("checkpoints.buffers", "1", "buffers_checkpoint"),
        ("checkpoints.write_s", "s", "checkpoint_write_time / 1000"),
        ("checkpoints.sync_s", "s", "checkpoint_sync_time / 1000"),
        ("bgwriter.buffers", "1", "buffers_clean"),
        ("bgwriter.maxwritten", "1", "maxwritten_clean"),
        ("bgwriter.allocated", "1", "buffers_alloc"),
        ("backend.buffers", "1", "buffers_backend"),
        ("backend.fsyncs", "1", "buffers_backend_fsync"),
    )),
    _Source(17, 99, "pg_stat_checkpointer", (
        ("checkpoints.timed", "1", "num_timed"),
        ("checkpoints.requested", "1", "num_requested"),
        ("checkpoints.buffers", "1", "buffers_written"),
        ("checkpoints.write_s", "s", "write_time / 1000"),
        ("checkpoints.sync_s", "s", "sync_time / 1000"),
    )),
    _Source(18, 99, "pg_stat_checkpointer", (
        ("checkpoints.done", "1", "num_done"),
        ("checkpoints.slru_buffers", "1", "slru_written"),
    ), what="the server's count of completed checkpoints, and their pages of transaction states"),
    _Source(17, 99, "pg_stat_bgwriter", (
        ("bgwriter.buffers", "1", "buffers_clean"),
        ("bgwriter.maxwritten", "1", "maxwritten_clean"),
        ("bgwriter.allocated", "1", "buffers_alloc"),
    )),
    _Source(12, 99, _DRIVEN, (
        ("database.commits", "1", "sum(xact_commit)"),
        ("database.rollbacks", "1", "sum(xact_rollback)"),
    )),
    _Source(12, 99, _DRIVEN, (
        ("database.blocks_read", "1", "sum(blks_read)"),
        ("database.blocks_hit", "1", "sum(blks_hit)"),
        ("database.deadlocks", "1", "sum(deadlocks)"),
        ("database.temp_files", "1", "sum(temp_files)"),
        ("database.temp_bytes", "B", "sum(temp_bytes)"),
        ("database.rows_returned", "1", "sum(tup_returned)"),
        ("database.rows_fetched", "1", "sum(tup_fetched)"),
        ("database.rows_inserted", "1", "sum(tup_inserted)"),
        ("database.rows_updated", "1", "sum(tup_updated)"),
        ("database.rows_deleted", "1", "sum(tup_deleted)"),
        ("database.conflicts", "1", "sum(conflicts)"),
    ), setting="track_counts", what="blocks, rows, temporary files and deadlocks"),
    _Source(12, 99, _DRIVEN, (
        ("database.read_s", "s", "sum(blk_read_time) / 1000"),
        ("database.write_s", "s", "sum(blk_write_time) / 1000"),
    ), setting="track_io_timing", what=DATA_TIMES),
    _Source(12, 99, _DRIVEN, (
        ("database.checksum_failures", "1", "sum(checksum_failures)"),
    ), setting="data_checksums", what="checksum failures"),
    _Source(14, 99, _DRIVEN, (
        ("database.session_s", "s", "sum(session_time) / 1000"),
        ("database.sessions", "1", "sum(sessions)"),
        ("database.sessions_abandoned", "1", "sum(sessions_abandoned)"),
        ("database.sessions_fatal", "1", "sum(sessions_fatal)"),
        ("database.sessions_killed", "1", "sum(sessions_killed)"),
    ), what=SESSION_TIMES),
    _Source(14, 99, _DRIVEN, (
        ("database.active_s", "s", "sum(active_time) / 1000"),
        ("database.idle_in_transaction_s", "s", "sum(idle_in_transaction_time) / 1000"),
    ), setting="track_activities", what=STATE_TIMES),
    _Source(18, 99, _DRIVEN, (
        ("database.workers_wanted", "1", "sum(parallel_workers_to_launch)"),
        ("database.workers_launched", "1", "sum(parallel_workers_launched)"),
    ), what=PARALLEL_WORKERS),
    _Source(12, 99, "(SELECT 1) archive", (
        ("archive.behind_bytes", "B", _UNARCHIVED),
    ), "gauge"),
    _Source(12, 99, "pg_stat_replication", (
        ("replication.behind_bytes", "B",
         "max(greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)))"
         " FILTER (WHERE replay_lsn IS NOT NULL)"),
    ), "gauge", of_others=True),
    _Source(16, 99, "pg_stat_io WHERE backend_type = 'client backend'", (
        ("io.client_reads", "1", "sum(reads)"),
        ("io.client_writes", "1", "sum(writes)"),
    )),
)  # fmt: skip


_SETTINGS = frozenset(source.setting for source in _SOURCES if source.setting)


def sources(
    major: int, settings: Collection[str] = _SETTINGS, reads_all: bool = True
) -> Sequence[_Source]:
    """The views that this version has, as far as they tell something.

    Args:
        major: Version.
        settings: Those that are on, of the ones that something is counted with.
        reads_all: Whether the role is shown what others do.
    """
    return [
        source
        for source in _SOURCES
        if source.first <= major <= source.last
        and (not source.setting or source.setting in settings)
        and (reads_all or not source.of_others)
    ]


def missing(major: int, settings: Collection[str]) -> list[Missing]:
    """What a later version would tell, or this one with another setting.

    Args:
        major: Version.
        settings: Those that are on, of the ones that something is counted with.
    """
    return [
        not_before(source.what, major, source.first)
        if source.first > major
        else switched_off(source.what, source.setting)
        for source in _SOURCES
        if source.what
        and source.last >= major
        and (source.first > major or (source.setting and source.setting not in settings))
    ]


def query(told: Sequence[_Source]) -> tuple[str, tuple[Column, ...]]:
    """One statement that reads everything of these views, each once, and its columns in order."""
    of: dict[str, list[str]] = {}  # each relation
    columns: dict[str, list[Column]] = {}
    for source in told:
        for name, unit, sql in source.columns:
            of.setdefault(source.relation, []).append(f"({sql})::float8")
            columns.setdefault(source.relation, []).append(Column(name, unit, source.kind))
    parts = [
        f"(SELECT {', '.join(texts)} FROM {relation}) AS s{number}"  # noqa: S608  our words
        for number, (relation, texts) in enumerate(of.items())
    ]
    return "SELECT * FROM " + ",\n     ".join(parts), tuple(chain(*columns.values()))  # noqa: S608


def sampler(subject: Subject) -> Found:
    """Counters of the server, and what of them is missing; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    major = major_of(session)
    on = [name for (name,) in session.execute(_ON, (list(_SETTINGS),)).fetchall()]
    text, columns = query(sources(major, on, reads_all_statistics(session)))
    prepared = Prepared(session, text, {"databases": list(subject.databases)})
    own = own_transactions(subject, session)

    def take() -> Row:
        told = own.told() if isinstance(own, OwnTransactions) else {}
        values = zip(columns, prepared.row(), strict=True)
        return told | {column.name: value for column, value in values if value is not None}

    if isinstance(own, Missing):
        return [Sampler("server statistics", columns, take), own, *missing(major, on)]
    return [Sampler("server statistics", (*columns, *COLUMNS), take), *missing(major, on)]
