"""A setting of the server that a reload changes, for some seconds."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from pgdyno.model.proof import Dose


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Has another value while it is on; the cluster's files have it back afterwards."""

    session: psycopg.Connection[tuple[object, ...]]  # in autocommit, of a superuser
    name: str
    value: str

    def turn(self, on: bool) -> None:
        """See `Intervention`; sessions take it before their next statement."""
        name = sql.Identifier(self.name)
        what = (
            sql.SQL("ALTER SYSTEM SET {} = {}").format(name, sql.Literal(self.value))
            if on
            else sql.SQL("ALTER SYSTEM RESET {}").format(name)
        )
        self.session.execute(what)
        self.session.execute("SELECT pg_reload_conf()")

    def dose(self) -> Dose | None:
        """See `Intervention`."""
        return None
