"""What the loader's tests look at: contents of all tables by hash, pages, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from tests.waiting import until

LOADED_AT = 1_700_000_000
TABLES = (
    "customer", "district", "history", "item", "new_order", "order_line", "orders", "stock",
    "warehouse",
)  # fmt: skip
PGBENCH = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")


def run(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """Rows of a query; none of a statement."""
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        cursor = session.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def new_database(server: Connection, name: str, further: str = "") -> Connection:
    """An empty database."""
    run(server, f"CREATE DATABASE {name} {further}")
    return server.to(name)


def left_alone(connection: Connection) -> None:
    """Waits until no other session is in the database: a killed client's works on for a while.

    How long, is the machine's: a busy one has made the next command give up waiting.
    """
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    until(lambda: run(connection, others) == [(0,)], f"no session in {connection.database}")


def contents(connection: Connection, tables: tuple[str, ...] = TABLES) -> dict[str, Any]:
    """Count and hash of the rows of each table, whatever their order."""
    return {
        table: run(
            connection,
            f"SELECT count(*), sum(hash_record_extended(t, 0))::text FROM {table} t",
        )[0]
        for table in tables
    }


def counted(connection: Connection, tables: tuple[str, ...]) -> dict[str, tuple[int, int, int]]:
    """Rows inserted since a VACUUM, changed since an ANALYZE, dead: as autovacuum counts them."""
    left_alone(connection)
    query = (
        "SELECT relname, n_ins_since_vacuum, n_mod_since_analyze, n_dead_tup"
        f" FROM pg_stat_user_tables WHERE relname IN ({', '.join(map(repr, tables))})"
    )
    return {name: (inserted, changed, dead) for name, inserted, changed, dead in
            run(connection, query)}  # fmt: skip


def keys(connection: Connection) -> list[tuple[Any, ...]]:
    """Indexes and constraints of the tables themselves, by their definitions."""
    return run(
        connection,
        "SELECT pg_get_indexdef(indexrelid), indisvalid FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indrelid"
        " WHERE relnamespace = 'public'::regnamespace"
        " UNION ALL SELECT pg_get_constraintdef(oid), convalidated FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'f') ORDER BY 1",
    )


def pages(connection: Connection, table: str) -> tuple[int, int, int]:
    """Pages of a table, and how many of them are all-visible and all-frozen."""
    run(connection, "CREATE EXTENSION IF NOT EXISTS pg_visibility")
    row = run(
        connection,
        f"SELECT pg_relation_size('{table}') / 8192, all_visible, all_frozen"
        f" FROM pg_visibility_map_summary('{table}')",
    )[0]
    return (row[0], row[1], row[2])


@dataclass(frozen=True, slots=True)
class Written:
    """What a load wrote."""

    size_bytes: int
    wal_bytes: int


class Scale:
    """Size of a database and place in the WAL, before and after."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._before = self._read()

    def _read(self) -> Written:
        row = run(
            self._connection,
            "SELECT pg_database_size(current_database()),"
            " (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint",
        )[0]
        return Written(*row)

    def written(self) -> Written:
        """The difference to when it began."""
        now = self._read()
        return Written(
            now.size_bytes - self._before.size_bytes, now.wal_bytes - self._before.wal_bytes
        )
