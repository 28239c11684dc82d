"""Standbys and replication slots: how far behind they are, and the WAL that is kept for them.

What nobody tells has no sample: of a standby that has not said how far it is, or idles, so that
its lag is not known; of slots that keep no WAL yet. Of several the one furthest behind counts.

Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_replication; pg_replication_slots.
"""

from __future__ import annotations

from pgdyno.model.server_views import STANDBYS
from pgdyno.sample.lacking import major_of, not_granted, reads_all_statistics
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Label, Missing, Row, Sampler, Snapshot, Subject
from pgdyno.sample.table_query import rows_of

_STATUS_SINCE = 13  # major version: of a slot's WAL
_INTERVAL_S = 2.0
_HERE = "pg_current_wal_lsn()"
_STANDBYS = (
    (Column("replication.standbys", "1", "gauge"), "count(*)"),
    (Column("replication.synchronous", "1", "gauge"),
     "count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))"),
    (Column("replication.sent_behind_bytes", "B", "gauge"),
     f"max(greatest(0, pg_wal_lsn_diff({_HERE}, sent_lsn))) FILTER (WHERE sent_lsn IS NOT NULL)"),
    (Column("replication.flush_behind_bytes", "B", "gauge"),
     f"max(greatest(0, pg_wal_lsn_diff({_HERE}, flush_lsn)))"
     " FILTER (WHERE flush_lsn IS NOT NULL)"),
    (Column("replication.write_lag_s", "s", "gauge"), "max(extract(epoch FROM write_lag))"),
    (Column("replication.flush_lag_s", "s", "gauge"), "max(extract(epoch FROM flush_lag))"),
    (Column("replication.replay_lag_s", "s", "gauge"), "max(extract(epoch FROM replay_lag))"),
)  # fmt: skip
_SLOTS = (
    (Column("slots.count", "1", "gauge"), "count(*)"),
    (Column("slots.inactive", "1", "gauge"), "count(*) FILTER (WHERE NOT active)"),
    (Column("slots.retained_bytes", "B", "gauge"),
     "CASE WHEN count(*) = 0 THEN 0 ELSE"
     f" max(greatest(0, pg_wal_lsn_diff({_HERE}, restart_lsn)))"
     " FILTER (WHERE restart_lsn IS NOT NULL) END"),
    (Column("slots.oldest_xmin_age", "1", "gauge"),
     "greatest(0, max(age(xmin)), max(age(catalog_xmin)))"),  # most slots hold back nobody
)  # fmt: skip
_EACH_STANDBY = f"""
SELECT application_name AS standby, coalesce(state, '') AS state,
       coalesce(sync_state, '') AS sync_state,
       pg_wal_lsn_diff({_HERE}, replay_lsn)::float8 AS replay_behind_bytes,
       extract(epoch FROM replay_lag)::float8 AS replay_lag_s,
       pg_wal_lsn_diff({_HERE}, flush_lsn)::float8 AS flush_behind_bytes,
       extract(epoch FROM write_lag)::float8 AS write_lag_s,
       extract(epoch FROM flush_lag)::float8 AS flush_lag_s
FROM pg_stat_replication ORDER BY application_name, pid LIMIT 100"""  # noqa: S608
_EACH_SLOT = """
SELECT slot_name AS slot, slot_type AS type, coalesce({status}, '') AS wal_status,
       active::integer AS active,
       pg_wal_lsn_diff({here}, restart_lsn)::float8 AS retained_bytes,
       greatest(age(xmin), age(catalog_xmin))::float8 AS xmin_age
FROM pg_replication_slots ORDER BY slot_name LIMIT 100"""


def query(reads_all: bool) -> tuple[str, tuple[Column, ...]]:
    """One statement that reads everything, and its columns in order.

    Args:
        reads_all: Whether the role is shown the state of standbys.
    """
    standbys = (("pg_stat_replication", _STANDBYS),) if reads_all else ()
    sources = (("pg_replication_slots", _SLOTS), *standbys)
    parts = []
    for view, columns in sources:
        values = ", ".join(f"({text})::float8" for _, text in columns)
        parts.append(f"(SELECT {values} FROM {view}) AS of_{view}")  # noqa: S608  our words
    text = "SELECT * FROM " + ", ".join(parts)  # noqa: S608  the same
    return text, tuple(column for _, told in sources for column, _ in told)


def slots_query(major: int) -> str:
    """Each slot; before 13 the server does not say what became of its WAL."""
    status = "wal_status" if major >= _STATUS_SINCE else "NULL::text"
    return _EACH_SLOT.format(status=status, here=_HERE)


def sampler(subject: Subject) -> Found:
    """Series and both tables; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    reads_all = reads_all_statistics(session)
    text, columns = query(reads_all)

    prepared = Prepared(session, text)

    def take() -> Row:
        values = zip(columns, prepared.row(), strict=True)
        return {column.name: value for column, value in values if value is not None}

    slots = slots_query(major_of(session))
    found: list[Sampler | Snapshot | Missing] = [
        Sampler("replication", columns, take, _INTERVAL_S),
        Snapshot("slots", (
            Label("slot"), Label("type"), Label("wal_status"), Column("active", "1", "gauge"),
            Column("retained_bytes", "B", "gauge"), Column("xmin_age", "1", "gauge"),
        ), lambda: rows_of(session, slots)),
    ]  # fmt: skip
    if reads_all:
        found.append(Snapshot("standbys", (
            Label("standby"), Label("state"), Label("sync_state"),
            Column("replay_behind_bytes", "B", "gauge"), Column("replay_lag_s", "s", "gauge"),
            Column("flush_behind_bytes", "B", "gauge"), Column("write_lag_s", "s", "gauge"),
            Column("flush_lag_s", "s", "gauge"),
        ), lambda: rows_of(session, _EACH_STANDBY)))  # fmt: skip
    else:
        found.append(not_granted(session, STANDBYS, "how far standbys are"))
    return found
