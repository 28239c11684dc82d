"""When the server's statistics were last reset, at both ends of the window. Versions 12 to 18.

By that a reset is known even where counters have outgrown since what they were: see `model.resets`.
Views have the names of 17, where the checkpointer got one of its own. Each cache of transaction
states has a moment of its own: the last counts, as of the driven databases.

Source: PostgreSQL, "The Cumulative Statistics System", `stats_reset`.
"""

from __future__ import annotations

from pgdyno.model.resets import DATABASES, MOMENT, READ, RESETS, VIEW
from pgdyno.sample.lacking import major_of
from pgdyno.sample.sampler import Column, Found, Label, Snapshot, Subject
from pgdyno.sample.table_query import rows_of

_OF_ITS_OWN = 17  # major version: before, the background writer's view is the checkpointer's, too
_SINCE = {"pg_stat_bgwriter": 12, "pg_stat_slru": 13, "pg_stat_wal": 14, "pg_stat_io": 16}


def query(major: int) -> str:
    """The statement that reads the moments that this version keeps."""
    of = {view: view for view, first in _SINCE.items() if first <= major}
    of["pg_stat_checkpointer"] = (
        "pg_stat_checkpointer" if major >= _OF_ITS_OWN else "pg_stat_bgwriter"
    )
    of[DATABASES] = f"{DATABASES} WHERE datname = ANY (%(databases)s)"
    return "\nUNION ALL ".join(
        f"SELECT '{view}' AS {VIEW},"  # noqa: S608  our words
        f" extract(epoch FROM max(stats_reset))::float8 AS {MOMENT},"
        f" extract(epoch FROM clock_timestamp())::float8 AS {READ} FROM {source}"
        for view, source in of.items()
    )


def sampler(subject: Subject) -> Found:
    """The snapshot; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    text = query(major_of(session))
    named = {"databases": list(subject.databases)}
    columns = (Label(VIEW), Column(MOMENT, "s", "gauge"), Column(READ, "s", "gauge"))
    return Snapshot(RESETS, columns, lambda: rows_of(session, text, named))
