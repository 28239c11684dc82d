"""Sessions of pgdyno's own on a server: those that do its work, not the load's."""

from __future__ import annotations

from typing import Any

import psycopg

from pgdyno.model.connection import Connection

_NO_TIMEOUTS = """
SELECT set_config(name, '0', false) FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
               'idle_in_transaction_session_timeout')
"""


def own_session(connection: Connection, *, name: str | None = None) -> psycopg.Connection[Any]:
    """A session in autocommit mode without timeouts; it is closed where it is used as a context.

    Whoever configured the server, or the role, did not think of pgdyno's work when they set them.

    Args:
        connection: Where it leads.
        name: What others see in pg_stat_activity; None: as the connection has it.

    Raises:
        psycopg.Error: The server does not let it in.
    """
    named = {} if name is None else {"application_name": name}
    session = psycopg.connect(**{**connection.arguments(), **named}, autocommit=True)
    try:
        session.execute(_NO_TIMEOUTS)
    except BaseException:
        session.close()
        raise
    return session
