"""What a database that pgbench or pgdyno loaded with pgbench's tables tells of itself."""

from __future__ import annotations

import psycopg

from pgdyno.model.connection import Connection


def branches(connection: Connection) -> int | None:
    """The scale, as pgbench finds it: the rows of `pgbench_branches`; None: no such table."""
    with psycopg.connect(**connection.arguments()) as session:
        there = session.execute("SELECT to_regclass('pgbench_branches') IS NOT NULL").fetchone()
        if there is None or not there[0]:
            return None
        row = session.execute("SELECT count(*) FROM pgbench_branches").fetchone()
    return int(row[0]) if row else None
