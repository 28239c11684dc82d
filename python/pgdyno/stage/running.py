"""A target whose server runs already and is not ours: only what can be set there is set.

Everything happens in databases that pgdyno made and marked with a comment: the fixture
(`pgdyno_fixture_…`) is the template of the trial's database (`pgdyno_trial`). Settings are set on
the trial's database, so nothing of the server itself changes, and nothing is left when it is gone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.run import Fixture
from pgdyno.model.serial import from_json, to_json
from pgdyno.model.settings import ServerFacts, Setting
from pgdyno.model.workload import database_names
from pgdyno.plan.server import SETTINGS_QUERY, facts_of_rows
from pgdyno.stage.conninfo import reach
from pgdyno.stage.readback import read_back
from pgdyno.stage.target import Ready, Restored

TRIAL = "pgdyno_trial"
_MARK = "pgdyno "  # every database of ours has a comment that begins so


class RunningTarget:
    """Databases of ours on somebody else's server."""

    def __init__(self, conninfo: str) -> None:
        self._connection = reach(conninfo)
        self._session = psycopg.connect(**self._connection.arguments(), autocommit=True)
        info = self._session.info
        rows = self._session.execute(SETTINGS_QUERY).fetchall()
        version = f"PostgreSQL {info.parameter_status('server_version')}"
        self.facts: ServerFacts = facts_of_rows(rows, info.server_version, version)
        self.build: dict[str, str] = {
            "version": version,
            "version_num": str(info.server_version),
            "configure": "unknown",
            "compiler": str(self._value("SELECT version()")),
            "origin": f"running server, {self._connection.shown()}"
            f"{' over TLS' if self._session.pgconn.ssl_in_use else ''}",
        }
        self._loading: str | None = None
        self._trials: list[str] = []  # databases of the trial

    def facts_of(self, build: str | None) -> ServerFacts:
        """See `Target.facts_of`."""
        assert build is None, "no plan names builds for a server that others start"
        return self.facts

    # -- fixture ------------------------------------------------------------------------------

    def find_fixture(self, ident: str) -> Fixture | None:
        """See `Target.find_fixture`."""
        comment = self._comment(_fixture_name(ident))
        if comment is None or not comment.startswith(f"{_MARK}fixture "):
            return None
        found = from_json(Fixture, comment.removeprefix(f"{_MARK}fixture "))
        return replace(found, reused=True)

    def begin_fixture(self, ident: str, build: str | None = None) -> Connection:
        """See `Target.begin_fixture`."""
        self._loading = _fixture_name(ident)
        self._drop(self._loading)
        self._run("CREATE DATABASE {}", self._loading)
        self._mark(self._loading, "loading")
        connection = self._connection.to(self._loading)
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            try:
                session.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
            except psycopg.Error as error:
                raise TargetError(
                    f"the server has no pg_prewarm: {str(error).strip()}",
                    hint="Install postgresql-contrib there.",
                ) from error
        return connection

    def keep_fixture(self, fixture: Fixture, databases: int = 1) -> Fixture:
        """See `Target.keep_fixture`."""
        assert self._loading is not None
        size = self._value("SELECT pg_database_size(%s)", self._loading)
        kept = replace(fixture, data_bytes=int(size), restore="template database")
        # Nobody may connect to a template while it is copied.
        self._run("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", self._loading)
        self._mark(self._loading, f"fixture {to_json(kept)}")
        self._loading = None
        return kept

    def drop_half_fixture(self) -> None:
        """See `Target.drop_half_fixture`."""
        if self._loading is not None:
            self._drop(self._loading)
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
            self._trials.append(name)
            self._drop(name)
            self._run("CREATE DATABASE {} TEMPLATE {}" + how, name, _fixture_name(ident))
            self._mark(name, "trial")
        return Restored("template database", time.monotonic() - began)

    def apply(self, settings: Sequence[Setting], build: str | None = None) -> Ready:
        """See `Target.apply`."""
        for name, setting in product(self._trials, settings):
            self._session.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(name), sql.Identifier(setting.name), sql.Literal(setting.value)
                )
            )  # fmt: skip
        connection = self._connection.to(TRIAL)
        return Ready(connection, read_back(connection, settings), None, None, 0.0,
                     self.build["compiler"])  # fmt: skip

    def crash(self) -> None:
        """Not ours to kill; `plan.resolve` refuses a plan that asks for it."""
        raise TargetError("the server is not ours, and is not killed")

    def log_text(self) -> str | None:
        """Not ours to read."""
        return None

    def stop(self) -> None:
        """See `Target.stop`."""
        self._drop_trials()

    def close(self) -> None:
        """See `Target.close`."""
        try:
            self.drop_half_fixture()
            self._drop_trials()
        finally:
            self._session.close()

    # -- databases of ours --------------------------------------------------------------------

    def _comment(self, name: str) -> str | None:
        """The comment on a database; empty if it has none, None if it does not exist."""
        row = self._session.execute(
            "SELECT coalesce(shobj_description(oid, 'pg_database'), '')"
            " FROM pg_database WHERE datname = %s",
            (name,),
        ).fetchone()
        return row[0] if row else None

    def _mark(self, name: str, what: str) -> None:
        self._session.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(
                sql.Identifier(name), sql.Literal(_MARK + what)
            )
        )

    def _drop_trials(self) -> None:
        for name in self._trials or [TRIAL]:
            self._drop(name)
        self._trials = []

    def _drop(self, name: str) -> None:
        comment = self._comment(name)
        if comment is None:
            return
        if not comment.startswith(_MARK):
            raise TargetError(
                f"database {name} exists and is not marked as ours",
                hint="Rename it or drop it yourself; pgdyno drops only what it made.",
            )
        self._run("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", name)
        self._session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        self._run("DROP DATABASE {}", name)

    def _run(self, text: LiteralString, *names: str) -> None:
        self._session.execute(sql.SQL(text).format(*map(sql.Identifier, names)))

    def _value(self, text: LiteralString, *arguments: Any) -> Any:  # noqa: ANN401 - a column
        row = self._session.execute(text, arguments or None).fetchone()
        assert row is not None
        return row[0]


def _fixture_name(ident: str) -> str:
    return f"pgdyno_fixture_{ident[:16]}"
