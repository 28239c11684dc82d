"""Tables of ours that write no WAL: a crash of the server empties them."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from pgdyno.model.connection import Connection
from pgdyno.model.description import LoadedTable
from pgdyno.model.errors import CheckError
from pgdyno.model.wording import plural
from pgdyno.session import own_session

# Of partitioned tables the partitions; a table of ours is looked for as its conditions are.
_OURS = """
SELECT top.oid::regclass::text, c.oid::regclass::text,
       EXISTS (SELECT FROM pg_constraint JOIN pg_class AS o ON o.oid = conrelid
               WHERE contype = 'f' AND confrelid = c.oid AND conrelid <> c.oid
                 AND o.relpersistence = 'p')
FROM unnest(%s::text[]) AS named
JOIN pg_class AS top ON top.oid = to_regclass(quote_ident(named))
LEFT JOIN LATERAL pg_partition_tree(top.oid) AS part ON true
JOIN pg_class AS c ON c.oid = coalesce(part.relid, top.oid)
WHERE c.relkind = 'r' AND c.relpersistence = %s ORDER BY 1, 2
"""


def make_unlogged(connection: Connection, tables: Sequence[LoadedTable]) -> None:
    """Make loaded tables unlogged, then vacuum and analyse them, as a load leaves them.

    A table that a logged one references cannot be: those that reference others come first.

    Args:
        connection: The database that holds them.
        tables: Of the workload; what remembers the load itself stays logged.

    Raises:
        CheckError: The server refused it.
    """
    names = [table.name for table in tables]
    made: set[str] = set()
    try:
        with own_session(connection) as session:
            while left := session.execute(_OURS, (names, "p")).fetchall():
                free = [name for _, name, is_referenced in left if not is_referenced]
                if not free:
                    raise CheckError(f"tables reference each other in a circle: {left[0][1]}")
                for name in free:
                    session.execute(sql.SQL("ALTER TABLE {} SET UNLOGGED").format(sql.SQL(name)))
                    session.execute(sql.SQL("VACUUM (FREEZE, ANALYZE) {}").format(sql.SQL(name)))
                made.update(table for table, _, is_referenced in left if not is_referenced)
    except psycopg.Error as error:
        raise CheckError(
            f"tables cannot be made unlogged: {' '.join(str(error).split())}",
            "Leave `unlogged` out of the stage.",
        ) from error
    if len(made) < len(names):
        became = plural(len(made), "table")
        raise CheckError(f"{became} became unlogged, the load made {len(names)}")


def emptied(connection: Connection, tables: Sequence[LoadedTable]) -> tuple[str, ...]:
    """Unlogged tables of a workload that hold no row, though the load left some.

    Args:
        connection: The database that holds them.
        tables: Of the workload.

    Raises:
        psycopg.Error: They cannot be read.
    """
    filled = [table.name for table in tables if table.rows]
    found = []
    with own_session(connection) as session:
        rows = session.execute(_OURS, (filled, "u")).fetchall()
        for name in dict.fromkeys(table for table, *_ in rows):
            query = sql.SQL("SELECT FROM {} LIMIT 1").format(sql.SQL(name))
            if session.execute(query).fetchone() is None:
                found.append(str(name))
    return tuple(found)
