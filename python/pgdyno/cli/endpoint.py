"""Options that name a database, read as libpq reads them."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError

ConninfoOption = Annotated[
    str,
    typer.Option(
        "--conninfo", "-d", metavar="CONNINFO",
        help="The database, as libpq reads it: `host=/run/postgresql dbname=tpcc` or a URI."
        " Passwords come from PGPASSWORD or ~/.pgpass.",
    ),
]  # fmt: skip


def endpoint(conninfo: str) -> Connection:
    """Connect once, and tell where libpq arrived and with which password.

    Raises:
        TargetError: Nothing answers there, or it refuses.
    """
    try:
        with psycopg.connect(conninfo, connect_timeout=10) as session:
            info = session.info
            return Connection(info.host, info.port, info.user, info.dbname, info.password or None)
    except psycopg.Error as error:
        raise TargetError(
            f"no connection: {str(error).strip()}",
            hint="Name the database with --conninfo 'host=… port=… user=… dbname=…'.",
        ) from error
