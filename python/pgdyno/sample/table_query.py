"""Reads a table of the server at one moment, waits for nobody's lock, and fails without a trace.

An error in the server's log would be the load's, for whoever reads it: such a trial is invalid.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from pgdyno.sample.lacking import major_of
from pgdyno.sample.sampler import Missing
from pgdyno.sample.session import ended

IN_TEMPLATE = (
    "in template1; then drop the fixture's database, pgdyno_fixture_…, which the next run loads"
    " anew"
)
"""Where a remedy belongs, and what brings it into the trials' databases: they copy the fixture's,
and who reads of a remedy has had a fixture loaded without it."""

_PATIENCE = "SET LOCAL lock_timeout = '100ms'"
_PARAMETER_RIGHTS = 15  # major version
_QUIET = "SELECT CASE WHEN {} THEN set_config('log_min_messages', 'fatal', {}) END"
_MAY_BE_QUIET = "has_parameter_privilege('log_min_messages', 'SET')"
_MAY_BE_QUIET_BEFORE = "current_setting('is_superuser') = 'on'"
_SCHEMA = """
SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
WHERE extname = %s AND has_schema_privilege(n.oid, 'USAGE')"""
_CLOSED = """
SELECT quote_ident(nspname), quote_ident(current_user)
FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
WHERE extname = %s AND NOT has_schema_privilege(n.oid, 'USAGE')"""
_MAY_ADD = """
SELECT FROM pg_available_extensions
WHERE name = %s AND current_setting('is_superuser') = 'on'"""

Rows = list[dict[str, Any]]


@contextmanager
def undisturbed(session: psycopg.Connection[Any]) -> Iterator[None]:
    """A transaction in which nobody's lock is waited for, and no failure is logged.

    Where our role may not keep its errors out of the log, they are in it.

    Args:
        session: In autocommit mode; what is set for the transaction ends with it.
    """
    try:
        with session.transaction():
            session.execute(_PATIENCE)
            be_quiet(session, for_transaction=True)
            yield
    except BaseException:
        ended(session, committed=False)
        raise
    ended(session, committed=True)


def be_quiet(session: psycopg.Connection[Any], *, for_transaction: bool) -> None:
    """Have no failure of the session logged from now on, where our role may do that.

    Args:
        session: Ours.
        for_transaction: Until its transaction ends; else until the session does.
    """
    has_rights = major_of(session) >= _PARAMETER_RIGHTS
    may = _MAY_BE_QUIET if has_rights else _MAY_BE_QUIET_BEFORE
    session.execute(_QUIET.format(may, "true" if for_transaction else "false").encode())


def rows_of(
    session: psycopg.Connection[Any], query: str, named: dict[str, Any] | None = None
) -> Rows:
    """The rows of a query by the names of its columns.

    Who locks a table for long is not waited for: what is read at one moment is read then, or not.

    Args:
        session: In autocommit mode.
        query: One statement, in words of ours alone.
        named: Its parameters.
    """
    with undisturbed(session), session.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode(), named).fetchall()


def extension_schema(session: psycopg.Connection[Any], name: str) -> str | None:
    """The schema of an extension's objects, quoted; None: the database has none for our role."""
    row = session.execute(_SCHEMA, (name,)).fetchone()
    return row and str(row[0])


def may_add_extension(session: psycopg.Connection[Any], name: str) -> bool:
    """Whether its files are installed on the server's host, and our role may use them."""
    return session.execute(_MAY_ADD, (name,)).fetchone() is not None


def without_extension(session: psycopg.Connection[Any], name: str, extension: str) -> Missing:
    """That something is told by an extension alone, which is not there, or not for our role.

    Args:
        session: In the database.
        name: Of what is missing.
        extension: What would tell it.
    """
    if (closed := session.execute(_CLOSED, (extension,)).fetchone()) is not None:
        schema, role = closed
        return Missing(
            name,
            f"the role {role} may not use the schema {schema} of the extension {extension}",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}; -- {IN_TEMPLATE}",
        )
    reason = f"the database {session.info.dbname} does not have the extension {extension}"
    return Missing(name, reason, f"CREATE EXTENSION {extension}; -- {IN_TEMPLATE}")


def add_extension(session: psycopg.Connection[Any], name: str) -> None:
    """Put it into the database of a server of ours, whose copy goes with the trial."""
    session.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name)))
