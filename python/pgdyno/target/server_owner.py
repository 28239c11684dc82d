"""Whose a server is that is not ours, and which of its databases are ours: one owner at a time.

**Ours** is a database that `CREATE DATABASE` itself marked: it has a connection limit that nobody
else would choose. A comment can only follow the creation, and a kill comes between; the limit is
there in the same instant as the database, is not copied with a template, and hinders nobody. Who
sets another limit or name takes the database over, and pgdyno leaves it alone. What a comment adds
is only what the database is for. (A server that dies in the middle of `DROP DATABASE` leaves a
database that can only be dropped, and puts its own mark into the limit: there the comment counts.)

**The owner** is whoever holds an advisory lock. Those are per database, and two pgdynos may come
in by different ones, so the lock lies in a database that all of them know: `pgdyno_owner`. Its
creation is a claim for the whole server, since names of databases are unique there, and needs no
right but CREATEDB. While its holder is connected nobody can drop or rename it; when it goes, the
next one makes it anew, or finds it and takes the lock. All that is created and dropped on the
server goes through the very session that holds the lock: when the session is gone nothing can be
dropped any more, and a statement that outlives its killed client keeps the next owner out until it
ends.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from pgdyno.model.connection import Connection
from pgdyno.model.errors import LostError, PlanError, StoppedError, TargetError
from pgdyno.model.system_errors import refusal
from pgdyno.session import own_session
from pgdyno.target import advisory_locks
from pgdyno.target.role import OTHER_CLIENTS

OWNER = "pgdyno_owner"
LIMIT = 1_346_850_361
"""The connection limit of databases of ours; far above what any server takes."""

_INVALID = -2  # what DROP DATABASE puts there before it removes files
_MARK = "pgdyno "  # every comment of ours begins so
_PATIENCE_S = advisory_locks.PATIENCE_S
_LEAVING_S = 2.0  # that sessions of ours get to end by themselves
_PAUSE_S = 0.02
_ATTEMPTS = 5  # of a claim whose database goes away meanwhile
LEFT = "What is left on the server goes when the next run begins there."
_STOPPED, _CRASHED = "57P01", "57P02"  # what a server says before it ends a session, if it can
# Only those that this role may end: it is an error to ask for a superuser's, or for a worker of
# autovacuum, which has no role and which DROP DATABASE sends away itself.
_OUR_SESSIONS = """
FROM pg_stat_activity JOIN pg_roles ON pg_roles.oid = usesysid
WHERE datname = %s AND pid <> pg_backend_pid() AND pg_has_role(usesysid, 'USAGE')
  AND (NOT rolsuper OR current_setting('is_superuser') = 'on')
"""
_WHO_WAITS: Final = f"SELECT pid FROM {OTHER_CLIENTS} AND datname = %s AND pid <> %s"  # noqa: S608
# Names and comments of strangers may be in no encoding that we could read: they are never fetched.
_DATABASES = """
SELECT datname, datconnlimit, comment, pg_get_userbyid(datdba), pg_has_role(datdba, 'MEMBER')
FROM (SELECT *, CASE WHEN starts_with(said, 'pgdyno ') THEN said ELSE '' END AS comment
      FROM (SELECT *, coalesce(shobj_description(oid, 'pg_database'), '') AS said
            FROM pg_database) AS seen) AS known
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A database of the server, as it says of itself."""

    name: str
    limit: int
    comment: str
    role: str  # whose it is
    is_our_roles: bool  # we may copy and drop it

    @property
    def is_ours(self) -> bool:
        """Whether pgdyno made it."""
        invalid = self.limit == _INVALID and self.comment.startswith(_MARK)
        return self.limit == LIMIT or invalid

    @property
    def is_whole(self) -> bool:
        """Whether it is ours and was not dropped by half."""
        return self.limit == LIMIT

    @property
    def purpose(self) -> str:
        """What it is for, in our words; empty where that was not said yet."""
        return self.comment.removeprefix(_MARK) if self.comment.startswith(_MARK) else ""


class Owner:
    """The right to create and drop databases of ours on a server."""

    def __init__(self, connection: Connection) -> None:
        """Take the server, before anything is touched.

        Raises:
            PlanError: A pooler stands in between.
            TargetError: Another pgdyno has it or uses a database of it, or `pgdyno_owner` is
                somebody else's.
        """
        if connection.pooled:
            raise PlanError(
                "a pooler stands between pgdyno and the server",
                hint="Name the server itself; only `bench` works through a pooler.",
            )
        self._connection = connection
        self._goodbye: str | None = None  # its SQLSTATE
        self._gave_back = False
        self._session = self._take()

    # -- the claim ----------------------------------------------------------------------------

    def _take(self) -> psycopg.Connection[Any]:
        for _ in range(_ATTEMPTS):
            try:
                self._make_room()
                session = self._enter()
            except psycopg.Error as error:
                raise TargetError(
                    f"{self._connection.shown()} cannot be owned: {str(error).strip()}",
                    hint="A role with CREATEDB is needed there, and access to database"
                    f" {OWNER} (pg_hba.conf).",
                ) from error
            if session is not None:
                return session
        raise TargetError(
            f"database {OWNER} on {self._connection.shown()} disappears each time it is made",
            hint="Does something drop databases there?",
        )

    def _make_room(self) -> None:
        """Have the database that the lock lies in."""
        with own_session(self._connection) as outside:
            self._require_unused(outside)
            found = _find(outside, OWNER)
            if found is not None and not found.is_ours:
                raise _foreign(OWNER)
            if found is not None and found.limit == _INVALID:
                outside.execute(_named("DROP DATABASE IF EXISTS {}", OWNER))
                found = None
            if found is None:
                # Somebody else may make it at the same time, which is as good.
                with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                    outside.execute(_creation(OWNER, " TEMPLATE template0"))
                    _comment(outside, OWNER, "owner: who measures here holds a lock in it")

    def _enter(self) -> psycopg.Connection[Any] | None:
        """Connect to it and take the lock; None: it is gone again."""
        try:
            session = own_session(self._connection.to(OWNER), name=advisory_locks.own_name())
        except psycopg.OperationalError:
            with psycopg.connect(**self._connection.arguments(), autocommit=True) as outside:
                if _find(outside, OWNER) is None:
                    return None
            raise
        session.add_notice_handler(self._hear)
        try:
            found = _find(session, OWNER)
            if found is None or not found.is_ours:  # made by somebody else since we looked
                raise _foreign(OWNER)
            if not advisory_locks.taken(
                session, advisory_locks.RUN, shared=False, patience_s=_PATIENCE_S
            ):
                raise self._taken(session)
            self._require_unused(session)
        except BaseException:
            session.close()
            raise
        return session

    def _hear(self, said: psycopg.errors.Diagnostic) -> None:
        """A server that is stopped at once, or crashes, ends sessions behind a mere warning."""
        if said.sqlstate in (_STOPPED, _CRASHED):
            self._goodbye = said.sqlstate

    @property
    def was_cut_off_by_a_crash(self) -> bool:
        """Whether the session ended without a word or with that of a crash: nobody meant it."""
        return self._session.closed and not self._gave_back and self._goodbye != _STOPPED

    @property
    def was_sent_away(self) -> bool:
        """Whether somebody ended the session, or stopped the server with it."""
        return self._goodbye == _STOPPED

    def _taken(self, session: psycopg.Connection[Any]) -> TargetError:
        who = advisory_locks.who_has(session, advisory_locks.RUN, OWNER)
        return TargetError(
            f"another pgdyno has the server {self._connection.shown()}: {who}",
            hint="Wait for its end, or stop it; two would disturb each other's trials.",
        )

    def _require_unused(self, session: psycopg.Connection[Any]) -> None:
        """Nothing measures or fills a database of the server, outside of runs."""
        if fact := advisory_locks.use_of(session, f"the server {self._connection.shown()}"):
            raise TargetError(
                fact,
                hint="Wait for its end, or stop it; trials would count what is done beside them.",
            )

    def release(self) -> None:
        """Give the server back. The lock's database goes as well, unless the next one waits."""
        pid = 0
        if not self._session.closed:
            pid, self._gave_back = self._session.info.backend_pid, True
            self._session.close()
        # What cannot be dropped now is found and used by the next owner.
        with suppress(psycopg.Error), own_session(self._connection) as outside:
            found = _find(outside, OWNER)
            others = outside.execute(_WHO_WAITS, (OWNER, pid)).fetchone()
            if found is not None and found.is_ours and others is None:
                outside.execute(_named("DROP DATABASE {}", OWNER))

    # -- what an owner does -------------------------------------------------------------------

    def create(self, name: str, how: LiteralString = "", *names: str) -> None:
        """Create a database that is ours from its first moment; `how` stands behind its name."""
        self.execute(_creation(name, how, *names))

    def say(self, name: str, purpose: str) -> None:
        """Say what a database of ours is for."""
        self.execute(_comment_text(name, purpose))

    def close_door(self, name: str) -> None:
        """Let nobody connect to a database of ours."""
        self.execute(_named("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", name))

    def find(self, name: str) -> Database | None:
        """A database by its name."""
        rows = self.execute(_DATABASES + "WHERE datname = %s", (name,))
        return Database(*rows[0]) if rows else None

    def all_ours(self) -> list[Database]:
        """All databases that pgdyno made, by whatever role, but the lock's."""
        marked = _DATABASES + "WHERE datname <> %s AND datconnlimit = ANY(%s)"
        rows = self.execute(marked, (OWNER, [LIMIT, _INVALID]))
        return [found for row in rows if (found := Database(*row)).is_ours]

    def drop(self, name: str) -> None:
        """Drop a database of ours with those who are in it; a missing one is fine.

        Raises:
            TargetError: It is not ours.
        """
        found = self.find(name)
        if found is None:
            return
        if not found.is_ours:
            raise _foreign(name)
        if found.limit != _INVALID:
            if not found.purpose:
                self.say(name, "left over")
            self.close_door(name)
        self._empty(name)
        self.execute(_named("DROP DATABASE {}", name))

    def _empty(self, name: str) -> None:
        """End sessions of ours; those that are about to go do so without a line in the log."""
        deadline = time.monotonic() + _LEAVING_S
        while self.execute("SELECT pid" + _OUR_SESSIONS, (name,)):
            if time.monotonic() >= deadline:
                self.execute("SELECT pg_terminate_backend(pid)" + _OUR_SESSIONS, (name,))
                return
            time.sleep(_PAUSE_S)

    def execute(
        self, query: LiteralString | sql.Composed, arguments: tuple[Any, ...] | None = None
    ) -> list[tuple[Any, ...]]:
        """Rows of a statement in the session that holds the lock.

        Raises:
            LostError: The session is gone, and the server with it: nothing may be dropped.
            StoppedError: The same, and somebody meant it.
            TargetError: The server refuses.
        """
        try:
            cursor = self._session.execute(query, arguments)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if error.sqlstate in (_STOPPED, _CRASHED):
                self._goodbye = error.sqlstate
            if self._session.closed or error.sqlstate in (_STOPPED, _CRASHED):
                raise self._lost() from error
            raise TargetError(*refusal(error)) from error

    def _lost(self) -> LostError:
        """What became of the server, as far as it said so."""
        match self._goodbye:
            case "57P01":
                what = "somebody stopped the server, or ended this run's session there"
                return StoppedError(what, LEFT)
            case "57P02":
                return LostError("the server crashed", f"Its log says why. {LEFT}")
        return LostError("the server went away without a word", f"Did it crash? {LEFT}")


def require_ours(session: psycopg.Connection[Any], *names: str) -> None:
    """Refuse a server that has a database of somebody else's under a name that we need.

    Raises:
        TargetError: It has one.
    """
    for name in names:
        found = _find(session, name)
        if found is not None and not found.is_ours:
            raise _foreign(name)


def _foreign(name: str) -> TargetError:
    return TargetError(
        f"database {name} exists and is not marked as ours",
        hint="Rename it or drop it yourself; pgdyno drops only what it made.",
    )


def _find(session: psycopg.Connection[Any], name: str) -> Database | None:
    row = session.execute(_DATABASES + "WHERE datname = %s", (name,)).fetchone()
    return Database(*row) if row else None


def _named(text: LiteralString, *names: str) -> sql.Composed:
    return sql.SQL(text).format(*map(sql.Identifier, names))


def _creation(name: str, how: LiteralString, *names: str) -> sql.Composed:
    mark = sql.SQL(" CONNECTION LIMIT {}").format(sql.Literal(LIMIT))
    return _named("CREATE DATABASE {}" + how, name, *names) + mark


def _comment_text(name: str, purpose: str) -> sql.Composed:
    text = sql.SQL("COMMENT ON DATABASE {} IS {}")
    return text.format(sql.Identifier(name), sql.Literal(_MARK + purpose))


def _comment(session: psycopg.Connection[Any], name: str, purpose: str) -> None:
    session.execute(_comment_text(name, purpose))
