"""What the buffer cache holds at both ends of the window, by relation: full telemetry alone.

From the extension pg_buffercache, which looks at every buffer. Relations of other databases are
one row without a name, unused buffers another. Source: PostgreSQL, "pg_buffercache".
"""

from __future__ import annotations

from pgdyno.sample.rights import not_granted
from pgdyno.sample.sampler import Column, Found, Label, Missing, Snapshot, Subject
from pgdyno.sample.table_query import (
    Rows,
    add_extension,
    could_have_extension,
    extension_schema,
    rows_of,
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
    """The snapshot, or why there is none; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    schema = extension_schema(session, EXTENSION)
    if schema is None and not (subject.ours and could_have_extension(session, EXTENSION)):
        return Missing(
            "buffer cache",
            f"the database {session.info.dbname} does not have the extension {EXTENSION}",
            f"CREATE EXTENSION {EXTENSION};",
        )
    if schema is not None:
        may = session.execute(_MAY, (f"{schema}.{EXTENSION}",)).fetchone()
        if not (may and may[0]):
            return not_granted(session, "buffer cache", "the buffer cache")

    def take() -> Rows:
        if extension_schema(session, EXTENSION) is None:
            add_extension(session, EXTENSION)
        return rows_of(session, query(extension_schema(session, EXTENSION) or ""))

    return Snapshot("buffers", _COLUMNS, take, telemetry="full", budget_us=_BUDGET_US)
