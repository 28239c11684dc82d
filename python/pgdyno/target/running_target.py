"""A target whose server runs already and is not ours: only what can be set there is set.

Everything happens in databases that pgdyno made and that are marked from their first moment (how
stands in `owner`): the fixture (`pgdyno_fixture_…`) is the template of the trial's database
(`pgdyno_trial`). Settings are set on the trial's database, so nothing of the server itself changes,
and nothing is left when it is gone. A run that is killed at any step leaves databases that the next
one drops before it begins: all of ours but fixtures that say that they are whole.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, product
from typing import LiteralString

import psycopg
from psycopg import sql

from pgdyno.model.connection import Connection
from pgdyno.model.errors import StoppedError, TargetError
from pgdyno.model.manifest import Installation
from pgdyno.model.plan import Stage
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import Effective, Fixture
from pgdyno.model.settings import ServerFacts, Setting
from pgdyno.model.workload import database_names
from pgdyno.plan.settings.server import (
    FORMAT_QUERY,
    SETTINGS_QUERY,
    facts_of_rows,
)
from pgdyno.plan.settings.stronger import overruled
from pgdyno.plan.settings.values import list_items
from pgdyno.session import own_session
from pgdyno.target.conninfo import reach
from pgdyno.target.interface import NO_ENVIRONMENT, Ready, Restored
from pgdyno.target.not_ours import NotOurs
from pgdyno.target.readback import configured, read_back
from pgdyno.target.replica import reach_replica, settings_there
from pgdyno.target.replica_claim import ReplicaClaim
from pgdyno.target.role import role_of
from pgdyno.target.server_about import about
from pgdyno.target.server_host import postmaster_here
from pgdyno.target.server_owner import LEFT, OWNER, Owner, require_ours

TRIAL = "pgdyno_trial"
_A_FIXTURE = "pgdyno_fixture_0"  # named as all of them, for pg_hba.conf
_PAUSE_S = 1.0  # between two looks for a server that went away
_FIXTURE = "fixture "  # begins the purpose of one that is whole
# No two postmasters of one port start in the same microsecond. Its version comes last.
_IDENTITY = """
SELECT extract(epoch FROM pg_postmaster_start_time()), current_setting('port'), version()
"""
# Files are told to members of pg_read_all_settings.
_SET_IN = """
SELECT name, sourcefile || ':' || sourceline FROM pg_settings WHERE sourcefile IS NOT NULL
"""
_OUR_TRIALS = re.compile(r"pgdyno_trial(_\d+)?")
_OUR_NAMES = re.compile(rf"{_OUR_TRIALS.pattern}|pgdyno_fixture_.+")


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server as it was asked; nothing of it was changed, and no session is left there."""

    connection: Connection
    facts: ServerFacts
    build: Installation
    identity: tuple[str, ...]  # of the server itself, however it is reached


def ask_server(conninfo: str, *, knocks: bool = False) -> RunningServer:
    """Ask a running server what it is: reads, takes no lock, leaves nothing.

    Args:
        conninfo: Names it, as libpq has it.
        knocks: Whether databases of ours shall be made there: names that they need must not be
            somebody else's, and whether pg_hba.conf lets us in is learnt, see `role_of`.

    Raises:
        PlanError: The conninfo is refused.
        TargetError: No server answers, or a database of such a name is not ours.
    """
    connection = reach(conninfo)
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        if knocks:
            require_ours(session, OWNER, TRIAL)
        number = session.info.server_version
        version = f"PostgreSQL {session.info.parameter_status('server_version')}"
        role = role_of(session, connection, (OWNER, TRIAL, _A_FIXTURE) if knocks else ())
        rows = session.execute(SETTINGS_QUERY).fetchall()
        try:
            disk_format = session.execute(FORMAT_QUERY).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            disk_format = None  # fixtures never leave this server, so that none can be of another
        set_in = dict(session.execute(_SET_IN).fetchall())
        row = session.execute(_IDENTITY).fetchone()
        assert row is not None
        identity = tuple(map(str, row))
        tls = " over TLS" if session.pgconn.ssl_in_use else ""
        lines = about(session, connection)
    build = Installation(
        version,
        str(number),
        configure="unknown",
        compiler=identity[-1],
        origin=f"running server, {connection.shown()}{tls}",
    )
    facts = facts_of_rows(rows, number, version, disk_format)
    facts = replace(facts, role=role, about=lines, set_in=set_in)
    return RunningServer(connection, facts, build, identity)


class RunningTarget(NotOurs):
    """Databases of ours on somebody else's server."""

    def __init__(self, conninfo: str, *, prewarm: bool = True, replica: str | None = None) -> None:
        """Take the server, and clean up after runs that were killed there.

        Args:
            conninfo: Names it, as libpq has it.
            prewarm: Whether trials want pg_prewarm in their databases.
            replica: Names a standby of it that answers reads; None: there is none.

        Raises:
            PlanError: The conninfo is refused, or leads to a pooler; or the replica is none.
            TargetError: No server answers, or another pgdyno has it.
        """
        server = ask_server(conninfo)
        self.connection, self.facts, self.build = server.connection, server.facts, server.build
        self._replica = None if replica is None else reach_replica(replica, self.connection)
        self._started = _started(self.connection)
        self._prewarm = prewarm
        self._fixtures: dict[str, str] = {}  # databases by ident
        self._loading: str | None = None
        self._trials: list[str] = []  # databases of the trial
        self._is_ending = False  # it took no more sessions
        self._claim: ReplicaClaim | None = None
        self._owner = Owner(self.connection)
        try:
            if self._replica is not None:
                self._claim = ReplicaClaim(self._replica, self.connection)
            self._sweep()
        except BaseException:
            self._release()
            raise

    @property
    def each(self) -> Sequence[RunningTarget]:
        """See `Target.each`."""
        return (self,)

    def configuration(self) -> dict[str, str]:
        """See `Target.configuration`; with that of its replica, without its database's own."""
        found = (*configured(self.connection), *self._of_replica())
        return {one.name: one.value for one in found}

    def _of_replica(self) -> tuple[Effective, ...]:
        """What it has set already, in names of its own; nothing where none is named."""
        return settings_there(self._replica) if self._replica is not None else ()

    def facts_of(self, build: str | None) -> ServerFacts:
        """See `Target.facts_of`."""
        assert build is None, "no plan names builds for a server that others start"
        return self.facts

    def rehearse(self, stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
        """See `Target.rehearse`: in transactions that are rolled back."""
        first = {(one.name, one.value): stage.name for stage in stages[::-1]
                 for one in stage.settings}  # fmt: skip
        in_vain = list(overruled(self.facts, stages))
        yield from ((stage, why) for stage, _, why in in_vain)
        refused = {(one.name, one.value) for _, one, _ in in_vain}
        with psycopg.connect(**self.connection.arguments(), autocommit=True) as session:
            for (name, value), stage in first.items():
                if (name, value) in refused:
                    continue
                change = sql.SQL("SET LOCAL {} = {}").format(
                    sql.Identifier(*name.split(".")), sql.Literal(value)
                )
                try:
                    with session.transaction(force_rollback=True):
                        session.execute(change)
                except psycopg.Error as error:
                    yield stage, f"{name} = {value}: {str(error).strip()}"

    # -- fixture ------------------------------------------------------------------------------

    def find_fixture(self, ident: str) -> Fixture | None:
        """See `Target.find_fixture`."""
        names = [_fixture_name(ident, prewarm=True)]
        if not self._prewarm:
            names.append(_fixture_name(ident, prewarm=False))
        for found in map(self._owner.find, map(self._own_name, names)):
            if found is not None and found.is_whole and found.purpose.startswith(_FIXTURE):
                self._fixtures[ident] = found.name
                fixture = from_json(Fixture, found.purpose.removeprefix(_FIXTURE))
                return replace(fixture, reused=True)
        return None

    def _own_name(self, name: str) -> str:
        """A name, with a number where another role took it: only its owner may copy a database."""
        for candidate in chain([name], (f"{name}_{number}" for number in count(2))):
            found = self._owner.find(candidate)
            if found is None or not found.is_ours or found.is_our_roles:
                return candidate
        raise AssertionError("numbers do not end")

    def begin_fixture(self, ident: str, build: str | None = None) -> Connection:
        """See `Target.begin_fixture`."""
        name = self._own_name(_fixture_name(ident, prewarm=self._prewarm))
        self._loading = self._fixtures[ident] = name
        self._owner.drop(self._loading)
        self._owner.create(self._loading)
        self._owner.say(self._loading, "loading")
        connection = self.connection.to(self._loading)
        if self._prewarm:
            _create_prewarm(connection)
        return connection

    def keep_fixture(self, fixture: Fixture, databases: int = 1) -> Fixture:
        """See `Target.keep_fixture`."""
        assert self._loading is not None
        ((size,),) = self._owner.execute("SELECT pg_database_size(%s)", (self._loading,))
        kept = replace(fixture, data_bytes=int(size), restore="template database")
        # Nobody may connect to a template while it is copied.
        self._owner.close_door(self._loading)
        self._owner.say(self._loading, _FIXTURE + to_json(kept))
        self._loading = None
        return kept

    def drop_half_fixture(self) -> None:
        """See `Target.drop_half_fixture`."""
        if self._loading is not None:
            self._owner.drop(self._loading)
            self._loading = None

    # -- trial --------------------------------------------------------------------------------

    def restore(self, ident: str, databases: int = 1, folder: str | None = None) -> Restored:
        """See `Target.restore`."""
        assert folder is None, "refused with the plan"
        began = time.monotonic()
        self._drop_trials()
        # Since 15 the default strategy writes every block to WAL; copying files is as before.
        how: LiteralString = " STRATEGY file_copy" if self.facts.major >= 15 else ""
        for name in database_names(TRIAL, databases):
            self._owner.drop(name)
            self._trials.append(name)
            self._owner.create(name, " TEMPLATE {}" + how, self._fixtures[ident])
            self._owner.say(name, "trial")
        return Restored("template database", time.monotonic() - began)

    def apply(
        self,
        settings: Sequence[Setting],
        build: str | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> Ready:
        """See `Target.apply`."""
        assert not environment, "a server that runs already is not started"
        if self._claim is not None:
            self._claim.renew()
        for name, setting in product(self._trials, settings):
            self._owner.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(name), sql.Identifier(setting.name), _value_of(setting)
                )
            )  # fmt: skip
        connection = self.connection.to(TRIAL)
        replica = self._replica and self._replica.to(TRIAL)
        found = (*read_back(connection, settings, ours=False), *self._of_replica())
        return Ready(connection, found, None, None, 0.0, self.build.compiler or "unknown",
                     replica=replica, aside=self.connection,
                     seen_pid=postmaster_here(self.connection))  # fmt: skip

    def stop(self) -> None:
        """See `Target.stop`; a server that ends in peace keeps our session and takes no other."""
        self._drop_trials()
        try:
            _started(self.connection)
        except psycopg.Error as error:
            self._is_ending = True
            said = " ".join(str(error).split())
            raise StoppedError(
                f"the server takes no more sessions: {said}",
                hint="Is the server being stopped?",
            ) from error

    @property
    def was_sent_away(self) -> bool:
        """Whether somebody ended this run's session, or stopped the server with it."""
        return self._owner.was_sent_away

    def came_back(self, patience_s: float) -> bool:
        """See `Target.came_back`."""
        deadline = time.monotonic() + patience_s
        went_away = self._is_ending or self._owner.was_cut_off_by_a_crash
        while True:
            try:
                started = _started(self.connection)
            except psycopg.Error:
                went_away = True
            else:
                if went_away or started != self._started:
                    return True
                raise StoppedError(
                    "the server runs, but somebody ended this run's session there", LEFT
                )
            if time.monotonic() >= deadline:
                return False
            time.sleep(min(_PAUSE_S, patience_s))

    def close(self) -> None:
        """See `Target.close`."""
        try:
            self.drop_half_fixture()
            self._drop_trials()
        finally:
            self._release()

    def _release(self) -> None:
        """Give back what was taken, the replica first: the lock's database goes there as well."""
        if self._claim is not None:
            self._claim.release()
        self._owner.release()

    # -- databases of ours --------------------------------------------------------------------

    def _sweep(self) -> None:
        """Drop what runs that were killed left: everything of ours but finished fixtures.

        Raises:
            TargetError: A trial was left by another role, in whose way a trial of ours would be.
        """
        for found in self._owner.all_ours():
            is_kept = found.purpose.startswith(_FIXTURE) and found.is_whole
            if found.is_our_roles and _OUR_NAMES.fullmatch(found.name) and not is_kept:
                self._owner.drop(found.name)
            elif not found.is_our_roles and _OUR_TRIALS.fullmatch(found.name):
                raise TargetError(
                    f"database {found.name} was left by a run of role {found.role}, and role"
                    f" {self.connection.user} may not drop it",
                    hint=f"Drop it as {found.role}, or let a run of that role begin and end.",
                )

    def _drop_trials(self) -> None:
        for name in self._trials:
            self._owner.drop(name)
        self._trials = []


def _started(connection: Connection) -> str:
    """When the server was started, in its words."""
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        row = session.execute("SELECT pg_postmaster_start_time()::text").fetchone()
    assert row is not None
    return str(row[0])


def _value_of(setting: Setting) -> sql.Composable:
    items = list_items(setting.name, setting.value)
    return sql.SQL(", ").join(map(sql.Literal, items))


def _create_prewarm(connection: Connection) -> None:
    """Have pg_prewarm in a database; template1 may have brought it."""
    try:
        with own_session(connection) as session:
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    except psycopg.errors.InsufficientPrivilege as error:
        raise TargetError(
            f"template1 has no pg_prewarm, and the role may not create it: {str(error).strip()}",
            hint="As a superuser in template1: CREATE EXTENSION pg_prewarm;"
            " or set protocol.prewarm = false.",
        ) from error
    except psycopg.Error as error:
        raise TargetError(
            f"the server has no pg_prewarm: {str(error).strip()}",
            hint="Install postgresql-contrib there, or set protocol.prewarm = false.",
        ) from error


def _fixture_name(ident: str, *, prewarm: bool) -> str:
    """Of the database; without pg_prewarm it is another one, as none can be added to a template."""
    return f"pgdyno_fixture_{ident[:16]}" + ("" if prewarm else "_bare")
