"""What holds back vacuum and freezing, and how long: old transactions, old snapshots, their age.

Ages of transactions are counted in transactions that began since. Source: PostgreSQL, "Routine
Vacuuming"; pg_stat_activity, pg_prepared_xacts, pg_database, pg_class.
"""

from __future__ import annotations

from pgdyno.model.server_views import OLDEST_TRANSACTION
from pgdyno.sample.lacking import is_on, not_granted, reads_all_statistics, switched_off
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Missing, Row, Sampler, Subject

_TIMED_WITH = "track_activities"
_OF_ALL = (
    (Column("freeze.database_age", "1", "gauge"),
     "SELECT max(age(datfrozenxid)) FROM pg_database WHERE datname = ANY (%(databases)s)"),
    (Column("freeze.max_age", "1", "gauge"),
     "SELECT current_setting('autovacuum_freeze_max_age')::bigint"),
    (Column("transactions.prepared", "1", "gauge"), "SELECT count(*) FROM pg_prepared_xacts"),
    (Column("transactions.prepared_oldest_s", "s", "gauge"),
     "SELECT extract(epoch FROM clock_timestamp() - min(prepared)) FROM pg_prepared_xacts"),
    (Column("wal.unflushed_bytes", "B", "gauge"),
     "SELECT greatest(0, pg_wal_lsn_diff("
     "pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()))"),
)  # fmt: skip
_OF_TIMES = (  # that sessions tell with track_activities alone
    (Column("transactions.oldest_s", "s", "gauge"),
     "SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM activity"),
    (Column("transactions.idle_oldest_s", "s", "gauge"),
     "SELECT max(extract(epoch FROM clock_timestamp() - state_change)) FROM activity"
     " WHERE state LIKE 'idle in transaction%%'"),
)  # fmt: skip
_OF_SESSIONS = (
    (Column("transactions.oldest_xmin_age", "1", "gauge"),
     "SELECT greatest(max(age(backend_xmin)), max(age(backend_xid))) FROM activity"),
)  # fmt: skip
# A background process has no transaction that anybody waits for, but autovacuum's, which holds
# back nobody: vacuums are left out of horizons.
_ACTIVITY = """
WITH activity AS MATERIALIZED (
  SELECT state, xact_start, state_change, backend_xmin, backend_xid
  FROM pg_stat_get_activity(NULL)
  WHERE pid <> pg_backend_pid() AND backend_type IN ('client backend', 'walsender'))
"""


def query(reads_all: bool, timed: bool = True) -> tuple[str, tuple[Column, ...]]:
    """One statement that reads everything, and its columns in order.

    Args:
        reads_all: Whether the role is shown the sessions of others; the oldest of one's own
            would not be the oldest.
        timed: Whether sessions tell when their transactions began.
    """
    of_sessions = (*(_OF_TIMES if timed else ()), *_OF_SESSIONS) if reads_all else ()
    told = (*_OF_ALL, *of_sessions)
    parts = ", ".join(f"coalesce(({text})::float8, 0)" for _, text in told)
    return (_ACTIVITY if reads_all else "") + "SELECT " + parts, tuple(c for c, _ in told)


def sampler(subject: Subject) -> Found:
    """Ages and counts; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    reads_all, timed = reads_all_statistics(session), is_on(session, _TIMED_WITH)
    text, columns = query(reads_all, timed)
    prepared = Prepared(session, text, {"databases": list(subject.databases)})

    def take() -> Row:
        values = zip(columns, prepared.row(), strict=True)
        return {column.name: value for column, value in values}

    found: list[Sampler | Missing] = [Sampler("transactions", columns, take)]
    if not reads_all:
        found.append(not_granted(session, OLDEST_TRANSACTION, "when others' transactions began"))
    elif not timed:
        found.append(switched_off(OLDEST_TRANSACTION, _TIMED_WITH))
    return found
