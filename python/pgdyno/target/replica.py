"""A standby of a running server that answers what only reads: whether it is one, and how far it is.

Both are asked by themselves; nothing is set up between them. Databases of ours come to a replica
from its primary, and go with them; that one run has it is `replica_claim`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.rights import Role
from pgdyno.model.run import Effective
from pgdyno.model.server_result import of_server
from pgdyno.model.settings import OriginKind
from pgdyno.session import becomes_true, own_session
from pgdyno.target.conninfo import reach
from pgdyno.target.readback import configured, server_words
from pgdyno.target.role import role_of

_IDENTITY = "SELECT system_identifier::text FROM pg_control_system()"
_CATCH_UP_S = 600.0
REPLAYED = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false)"
"""Whether a standby has replayed WAL up to an LSN."""


def reach_replica(conninfo: str, primary: Connection) -> Connection:
    """Reach a standby, and make sure that it is one of that server.

    Args:
        conninfo: Names it, as libpq has it.
        primary: The server that it is to follow.

    Raises:
        PlanError: It is no standby, or of another server; or a pooler stands in between.
        TargetError: It does not answer.
    """
    replica = reach(conninfo)
    if replica.pooled:
        raise PlanError(
            "a pooler stands between pgdyno and the replica",
            "Name the standby itself by target.replica.",
        )
    try:
        with own_session(replica) as there, own_session(primary) as here:
            row = there.execute("SELECT pg_is_in_recovery()").fetchone()
            identities = [_identity(there), _identity(here)]
    except psycopg.Error as error:
        raise TargetError(f"{replica.shown()} does not answer: {str(error).strip()}") from error
    if row != (True,):
        raise PlanError(
            f"{replica.shown()} is no standby: it is not in recovery",
            "target.replica names a streaming standby of target.conninfo's server.",
        )
    if None not in identities and identities[0] != identities[1]:
        raise PlanError(
            f"{replica.shown()}: it follows another server than {primary.shown()}; their system"
            f" identifiers are {identities[0]} and {identities[1]}",
            "target.replica names a streaming standby of target.conninfo's server.",
        )
    return replica


def role_there(replica: Connection, databases: Iterable[str]) -> Role:
    """What our role may do on a standby; see `role_of`.

    Raises:
        TargetError: It does not answer.
    """
    try:
        with own_session(replica) as session:
            return role_of(session, replica, databases)
    except psycopg.Error as error:
        raise TargetError(f"{replica.shown()} does not answer: {str(error).strip()}") from error


def settings_there(replica: Connection) -> tuple[Effective, ...]:
    """Version and settings of a standby, named as those of one server among several.

    Raises:
        TargetError: It does not answer.
    """
    try:
        words, found = server_words(replica), configured(replica)
    except psycopg.Error as error:
        raise TargetError(f"{replica.shown()} does not answer: {str(error).strip()}") from error
    version = Effective("version", words, OriginKind.SERVER.value, "what it calls itself")
    return tuple(replace(one, name=of_server("replica", one.name)) for one in (version, *found))


def _identity(session: psycopg.Connection[tuple[object, ...]]) -> str | None:
    """What primary and standbys have in common; None: our role may not know."""
    try:
        row = session.execute(_IDENTITY).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return None if row is None else str(row[0])


def caught_up(replica: Connection, primary: Connection, patience_s: float = _CATCH_UP_S) -> None:
    """Wait until a replica has replayed all that its primary has written by now.

    Args:
        replica: A database that the primary has.
        primary: The same there.
        patience_s: How long at most.

    Raises:
        TargetError: It has not after that time, or one of both does not answer.
    """
    try:
        with own_session(primary) as here:
            row = here.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert row is not None
        with own_session(replica.to(_maintenance(replica))) as there:
            if not becomes_true(there, REPLAYED, row, patience_s):
                raise TargetError(
                    f"replica {replica.shown()} has not replayed {row[0]} after {patience_s:.0f} s",
                    "Does it stream? pg_stat_replication of its primary tells.",
                )
        own_session(replica).close()  # the database is there now
    except psycopg.Error as error:
        raise TargetError(f"the replica does not answer: {str(error).strip()}") from error


def _maintenance(replica: Connection) -> str:
    """A database that is there whatever was replayed."""
    return "template1" if replica.database == "postgres" else "postgres"
