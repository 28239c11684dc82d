"""What the buffer cache holds at both ends of the window, by relation: full telemetry alone.

From the extension pg_buffercache, which looks at every buffer. Relations of other databases are
one row without a name, unused buffers another. Source: PostgreSQL, "pg_buffercache".
"""

from __future__ import annotations

from pgdyno.model.server_views import BUFFERS
from pgdyno.sample.lacking import not_granted
from pgdyno.sample.sampler import Column, Found, Label, Snapshot, Subject
from pgdyno.sample.table_query import (
    Rows,
    add_extension,
    extension_schema,
    may_add_extension,
    rows_of,
    without_extension,
)

EXTENSION = "pg_buffercache"
_MOST = 500
_BUDGET_US = 2_000_000
_COLUMNS = (
    Label("relation"),
    Label("kind"),
    Column("buffers", "1", "gauge"),
    Column("dirty", "1", "gauge"),
    Column("usage", "1", "gauge"),
)
_MAY = "SELECT has_table_privilege(%s, 'SELECT')"


def query(schema: str) -> str:
    """Buffers by relation, the most first.

    Args:
        schema: That the extension lies in, quoted.
    """
    return f"""
        SELECT coalesce(c.oid::regclass::text, '') AS relation,
               CASE WHEN b.relfilenode IS NULL THEN 'unused' WHEN c.oid IS NULL THEN 'elsewhere'
                    WHEN c.relkind = 'i' THEN 'index' ELSE 'table' END AS kind,
               count(*)::float8 AS buffers, count(*) FILTER (WHERE isdirty)::float8 AS dirty,
               coalesce(avg(usagecount), 0)::float8 AS usage
        FROM {schema}.{EXTENSION} b
        LEFT JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid)
          AND b.reldatabase IN (0, (SELECT oid FROM pg_database
                                    WHERE datname = current_database()))
        GROUP BY 1, 2 ORDER BY buffers DESC LIMIT {_MOST}"""  # noqa: S608  quoted, ours


def sampler(subject: Subject) -> Found:
    """The snapshot, or why there is none; None without a session, or full telemetry."""
    if (session := subject.session) is None or subject.telemetry != "full":
        return None
    schema = extension_schema(session, EXTENSION)
    if schema is None and subject.ours and may_add_extension(session, EXTENSION):
        add_extension(session, EXTENSION)  # before the window, which it would disturb
        schema = extension_schema(session, EXTENSION)
    if schema is None:
        return without_extension(session, BUFFERS, EXTENSION)
    may = session.execute(_MAY, (f"{schema}.{EXTENSION}",)).fetchone()
    if not (may and may[0]):
        return not_granted(session, BUFFERS, "the buffer cache")
    text = query(schema)

    def take() -> Rows:
        return rows_of(session, text)

    return Snapshot("buffers", _COLUMNS, take, telemetry="full", budget_us=_BUDGET_US)
