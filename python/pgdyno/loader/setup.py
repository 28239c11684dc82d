"""SQL of a user that is run once into a fixture, after loading."""

from __future__ import annotations

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import CheckError
from pgdyno.model.workload import SourceFile
from pgdyno.session import COUNT_NOW, own_session


def run_setup(connection: Connection, setup: SourceFile) -> None:
    """Run a file of SQL in one transaction, then vacuum and analyse what it made.

    Raises:
        CheckError: The server refused a statement.
    """
    try:
        with own_session(connection) as session:
            session.execute(setup.text.encode())
            session.execute(COUNT_NOW)
            session.execute("VACUUM (ANALYZE)")
    except psycopg.Error as error:
        raise CheckError(
            f"{setup.path} failed: {str(error).strip()}",
            hint="It runs as one transaction, without psql's commands; the fixture was not kept.",
        ) from error
