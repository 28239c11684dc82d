"""The use of a loaded database by what is no run: `bench`, `knee`, `load`; a lock says so in it.

**Benches share**: many clients of one server are many processes, and who starts two against one
database means it. What changes the load by itself (`knee`) or the tables (`load`) is alone with its
database. None of them goes on while a run owns the server, whatever the database: its trials would
count what the other does; and a run refuses a server on which one of them is at work.

Behind a pooler no session is one's own, so that no lock can be held: there is only looked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.workload import database_names
from pgdyno.session import own_session
from pgdyno.target import advisory_locks
from pgdyno.target.server_owner import OWNER

_PATIENCE_S = 2.0


@contextmanager
def in_use(connection: Connection, *, alone: bool, databases: int = 1) -> Iterator[None]:
    """Meanwhile no run begins on the server, and nothing that wants a database alone on these.

    Args:
        connection: To the database, or to the first of several.
        alone: Whether nothing else of pgdyno's may use them at the same time.
        databases: How many, named as `database_names` has it.

    Raises:
        TargetError: Another pgdyno owns the server, or has a database; or one cannot be entered.
    """
    with ExitStack() as held:
        for name in database_names(connection.database, databases):
            held.enter_context(_one_in_use(connection.to(name), alone))
        yield


@contextmanager
def _one_in_use(connection: Connection, alone: bool) -> Iterator[None]:
    try:
        session = own_session(connection, name=advisory_locks.own_name())
    except psycopg.Error as error:
        raise TargetError(f"{connection.shown()}: {str(error).strip()}") from error
    with session:
        try:
            if connection.pooled:
                _require_unused(session, connection, alone)
            elif not advisory_locks.taken(
                session, advisory_locks.USE, shared=not alone, patience_s=_PATIENCE_S
            ):
                raise _used(session, connection, alone)
            _require_no_run(session, connection)
        except psycopg.Error as error:
            raise TargetError(f"{connection.shown()}: {str(error).strip()}") from error
        if connection.pooled:
            session.close()
        try:
            yield
        finally:
            # The next one need not wait until the server has noticed that this session ended.
            with suppress(psycopg.Error):
                session.execute("SELECT pg_advisory_unlock_all()")


def end_load(connection: Connection) -> None:
    """End what is left of a load whose hosts were lost: a host that is cut off keeps its sessions.

    Only for who has the database alone. What those had not committed is rolled back.
    """
    with suppress(psycopg.Error), own_session(connection) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND mode = 'ShareLock' AND (classid, objid) = (%s, %s) AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            advisory_locks.LOAD,
        )


def _require_unused(session: psycopg.Connection[Any], connection: Connection, alone: bool) -> None:
    mode = "" if alone else " AND mode = 'ExclusiveLock'"
    query = (
        "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid, objid) ="
        " (%s, %s) AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    if session.execute((query + mode).encode(), advisory_locks.USE).fetchone() is not None:
        raise _used(session, connection, alone)


def _used(session: psycopg.Connection[Any], connection: Connection, alone: bool) -> TargetError:
    who = advisory_locks.who_has(session, advisory_locks.USE, connection.database)
    rule = (
        "Only `bench` shares a database, and only with `bench`."
        if alone
        else "A search of the knee, or a load, is alone with its database."
    )
    return TargetError(
        f"another pgdyno uses {connection.shown()}: {who}",
        f"Wait for its end, or stop it. {rule}",
    )


def _require_no_run(session: psycopg.Connection[Any], connection: Connection) -> None:
    if (found := advisory_locks.holder(session, advisory_locks.RUN, OWNER)) is not None:
        raise TargetError(
            f"a run of another pgdyno has the server of {connection.shown()}: {found[1]}",
            "Wait for its end, or stop it; its trials would count what is done beside them.",
        )
