"""Servers and loaded databases for a while, as contexts: of their own, and gone afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg

from pgdyno.api.databases import Data, load
from pgdyno.folders import scratch
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.plan import Target
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import Cluster, initdb

Settings = Mapping[str, str | int | float | bool]


class Server:
    """A PostgreSQL server of its own, with its data in a folder that goes with it.

    Its data lie in /tmp and are not synced when they are made: for trying things out, not for
    numbers about storage. A plan's `folder` is for those.

    Args:
        settings: By name, as postgresql.conf has them.
        bindir: PostgreSQL's programs; None: the embedded ones.

    Example:
        >>> import pgdyno
        >>> with pgdyno.Server({"synchronous_commit": "off"}) as server:
        ...     with server.connect() as session:
        ...         session.execute("SHOW synchronous_commit").fetchone()
        ('off',)
    """

    def __init__(
        self, settings: Settings | None = None, *, bindir: str | Path | None = None
    ) -> None:
        self._settings = dict(settings or {})
        self._bindir = bindir
        self._held = ExitStack()
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        target = (
            Target("installed", bindir=str(self._bindir)) if self._bindir else Target("embedded")
        )
        user = postgres_user()
        binaries = find_binaries(target, user)
        with ExitStack() as held:
            folder = held.enter_context(scratch(Path("/tmp"), "pgdyno-server-"))  # noqa: S108  ours
            initdb(binaries, folder.path / "data", user, ("--no-sync",))
            cluster = Cluster(binaries, folder.path / "data", user, "socket")
            held.callback(cluster.close)
            cluster.start(_settings(self._settings))
            self._cluster, self._held = cluster, held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster = None
        self._held.close()

    @property
    def connection(self) -> Connection:
        """How the driver gets to its database `postgres`.

        Raises:
            TargetError: It is not running.
        """
        return self._running.connection()

    @property
    def conninfo(self) -> str:
        """The same for libpq: psql, psycopg, pgbench."""
        return psycopg.conninfo.make_conninfo(**self.connection.arguments())

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A session of psycopg in autocommit mode."""
        return psycopg.connect(**self.connection.arguments(), autocommit=True)

    def restart(self, settings: Settings) -> None:
        """Stop it in order, and start it with these settings instead of those before.

        Raises:
            TargetError: It does not start; the last lines of its log are in the message.
        """
        self._running.stop(clean=True)
        self._settings = dict(settings or {})
        self._running.start(_settings(self._settings))

    def log(self) -> str:
        """The last lines of its log."""
        return self._running.last_words()

    @property
    def _running(self) -> Cluster:
        if self._cluster is None:
            raise TargetError("the server is not running", "Use it as a context: `with Server()`.")
        return self._cluster


@contextmanager
def loaded(data: Data, server: Server | None = None) -> Iterator[Connection]:
    """A database with a workload's rows, for as long as the context lasts.

    Args:
        data: What is loaded.
        server: Where; None: a server of its own.

    Raises:
        PgdynoError: See `load`.

    Example:
        >>> import pgdyno
        >>> with pgdyno.loaded(pgdyno.Data("tpcb", scale=1)) as database:
        ...     pgdyno.bench(pgdyno.Asked("tpcb"), database, seconds=1).driven.tps > 0
        True
    """
    with ExitStack() as stack:
        if server is None:
            server = stack.enter_context(Server())
        name = f"pgdyno_{secrets.token_hex(6)}"
        with server.connect() as session:
            session.execute(f"CREATE DATABASE {name}")
        try:
            connection = server.connection.to(name)
            load(data, connection)
            yield connection
        finally:
            with server.connect() as session:
                session.execute(f"DROP DATABASE IF EXISTS {name}")


def _settings(settings: Settings) -> list[Setting]:
    origin = Origin(OriginKind.PLAN, "from Python")
    return [Setting(name, _text(value), origin) for name, value in settings.items()]


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
