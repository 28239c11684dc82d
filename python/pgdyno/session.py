"""Sessions of pgdyno's own on a server: those that do its work, not the load's."""

from __future__ import annotations

import time
from typing import Any, LiteralString, TypeVar

import psycopg

from pgdyno.model.connection import Connection

NO_TIMEOUTS = """
SELECT set_config(name, '0', false) FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
               'idle_in_transaction_session_timeout')
"""
"""Whoever configured the server, or the role, did not think of pgdyno's work when they set them."""
COUNT_NOW = """
DO $$ BEGIN IF current_setting('server_version_num')::int >= 150000
THEN PERFORM pg_stat_force_next_flush(); END IF; END $$
"""
"""Has the server count what this session did, once its transaction ends. A session counts once a
second at most, and what is counted after a VACUUM makes a table due for autovacuum. Before 15
nothing asks for it."""
_PAUSE_S = 0.05  # between two questions
Kind = TypeVar("Kind", bound=psycopg.Connection[Any])


def own_session(connection: Connection, *, name: str | None = None) -> psycopg.Connection[Any]:
    """A session in autocommit mode without timeouts; it is closed where it is used as a context.

    Args:
        connection: Where it leads.
        name: What others see in pg_stat_activity; None: as the connection has it.

    Raises:
        psycopg.Error: The server does not let it in.
    """
    return own_session_of(psycopg.Connection, connection, name=name)


def own_session_of(kind: type[Kind], connection: Connection, *, name: str | None = None) -> Kind:
    """The same as a session of some kind.

    Args:
        kind: Its class.
        connection: Where it leads.
        name: See `own_session`.

    Raises:
        psycopg.Error: The server does not let it in.
    """
    named = {} if name is None else {"application_name": name}
    session = kind.connect(**{**connection.arguments(), **named}, autocommit=True)
    try:
        session.execute(NO_TIMEOUTS)
    except BaseException:
        session.close()
        raise
    return session


def becomes_true(
    session: psycopg.Connection[Any],
    query: LiteralString,
    arguments: tuple[object, ...],
    patience_s: float,
) -> bool:
    """Ask until a query gives true; False: it did not within that time.

    Args:
        session: In autocommit mode.
        query: Gives one row of one column.
        arguments: Of the query.
        patience_s: How long at most.

    Raises:
        psycopg.Error: The server does not answer.
    """
    deadline_s = time.monotonic() + patience_s
    while session.execute(query, arguments).fetchone() != (True,):
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_PAUSE_S)
    return True
