"""Options that name a database, read as libpq reads them."""

from __future__ import annotations

from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.console import stderr
from pgdyno.model.connection import Connection

ConninfoOption = Annotated[
    str,
    typer.Option(
        "--conninfo", "-d", metavar="CONNINFO",
        help="The database, as libpq reads it: `host=/run/postgresql dbname=tpcc` or a URI, with"
        " several hosts and TLS where you like. Passwords come from PGPASSWORD or ~/.pgpass.",
    ),
]  # fmt: skip


def database(conninfo: str) -> Connection:
    """Connect once, and tell how the driver gets there.

    Raises:
        PlanError: libpq or the driver cannot do what the conninfo asks for.
        TargetError: Nothing answers there, or it refuses.
    """
    connection = api.connection_to(conninfo)
    if connection.prepare == "unnamed":
        stderr.print(api.POOLED)
    return connection
