r"""Interleaved comparison of loaders with plain COPY of the same rows into the same server.

    python benches/load.py --conninfo "host=127.0.0.1 port=5432 user=postgres" \
        --source tpcc_loaded --rows /a/folder/the/server/may/write \
        --loader 'pgdyno=pgdyno load tpcc --conninfo "{conninfo}" --warehouses 10' \
        --connections 2 --rounds 3 --out load.json

Method. The tables of --source, a database that was loaded before, are written to binary files in
pieces of at most 32 MB by `COPY (...) TO` of the server; this is not timed. Then each round runs
every loader and `plain` once, in rotating order, each after a CHECKPOINT:

* plain: into empty tables without indexes (a template copy of --source, truncated), the pieces are
  read by `COPY ... FROM` of the server over --connections sessions, largest first; then primary
  keys and indexes are built by their definitions in --source, foreign keys after them; then each
  table gets VACUUM ANALYZE; all over the same number of sessions. No row is generated and no row
  passes a socket: this is the limit of this server with these settings, not a loader.
* a loader: its command, from start to exit, into a fresh empty database {database}. It has to
  do all that `plain` does: give a command that also vacuums where the tool does not.

Reported: seconds, the phases of plain, rows, CPU seconds of client and server, WAL bytes, size, and
the ratio loader / plain within a round; the extremes of n independent rounds enclose the median
ratio with probability 1 - 2^(1-n).

Limits. The folder of --rows must be of this machine and writable by the server's user. A loader of
other rows (another tool's own data) has other sizes and indexes: its ratio compares jobs, not equal
bytes. Databases named <scratch>_* are created, and dropped at the end; existing ones are refused.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from load_table import PLAIN, Load, markdown
from measure import (
    Command,
    Failure,
    Server,
    cpu_s,
    exit_code,
    filled,
    named,
    postmaster,
    rotated,
    surroundings,
    write_json,
)
from psycopg import sql

PIECE_BLOCKS = 4096  # 32 MB at the usual block size

_TABLES = """
select c.oid::regclass::text, pg_relation_size(c.oid) / current_setting('block_size')::int
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and n.nspname = 'public' order by 2 desc, 1
"""
_CONSTRAINTS = """
select k.conrelid::regclass::text, k.conname, k.contype, pg_get_constraintdef(k.oid)
from pg_constraint k join pg_namespace n on n.oid = k.connamespace
where n.nspname = 'public' and k.contype in ('p', 'u', 'f')
order by pg_relation_size(k.conrelid) desc, k.conname
"""
_INDEXES = """
select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and c.relkind = 'r'
  and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
order by pg_relation_size(i.indrelid) desc, 1
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file with some rows of a table."""

    table: str
    path: str
    rows: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What is built after the rows are in."""

    tables: tuple[str, ...]  # by size, largest first
    unindex: tuple[str, ...]  # statements that remove all keys and indexes
    index: tuple[str, ...]
    foreign_keys: tuple[str, ...]


def shape_of(server: Server, database: str) -> Shape:
    """Read tables, keys and indexes from the catalogue.

    Raises:
        Failure: There is no table.
    """
    with server.connect(database) as connection:
        tables = connection.execute(_TABLES).fetchall()
        constraints = connection.execute(_CONSTRAINTS).fetchall()
        indexes = connection.execute(_INDEXES).fetchall()
    if not tables:
        raise Failure(f"database {database} has no table", "Load it first.")

    def quoted(name: str) -> str:
        return sql.Identifier(name).as_string()

    foreign = [row for row in constraints if row[2] == "f"]
    keys = [row for row in constraints if row[2] != "f"]
    drop = [f"alter table {row[0]} drop constraint {quoted(row[1])}" for row in [*foreign, *keys]]
    drop += [f"drop index {name}" for name, _ in indexes]
    add = [
        [f"alter table {t} add constraint {quoted(n)} {d}" for t, n, _, d in rows]
        for rows in (keys, foreign)
    ]
    return Shape(
        tables=tuple(name for name, _ in tables),
        unindex=tuple(drop),
        index=(*add[0], *(definition for _, definition in indexes)),
        foreign_keys=tuple(add[1]),
    )


def in_parallel(server: Server, database: str, statements: Sequence[str], sessions: int) -> None:
    """Run statements over some sessions; each takes the next one that is left."""
    sessions = min(sessions, len(statements))
    if not sessions:
        return
    left = iter(statements)  # its next() is atomic

    def work(_: int) -> None:
        with server.connect(database) as connection:
            for statement in left:
                connection.execute(statement.encode())

    with ThreadPoolExecutor(sessions) as pool:
        for done in [pool.submit(work, number) for number in range(sessions)]:
            done.result()


def dump(server: Server, database: str, folder: Path) -> list[Piece]:
    """Let the server write all rows into files; the pieces, largest tables first."""
    pieces = []
    with server.connect(database) as connection:
        for name, blocks in connection.execute(_TABLES).fetchall():
            for number, start in enumerate(range(0, max(blocks, 1), PIECE_BLOCKS)):
                path = str(folder / f"{name.strip(chr(34))}.{number}.bin")
                end = start + PIECE_BLOCKS
                done = connection.execute(
                    f"copy (select * from {name} where ctid >= '({start},0)'::tid"  # noqa: S608
                    f" and ctid < '({end},0)'::tid)"
                    f" to {sql.Literal(path).as_string()} (format binary)".encode()
                )
                pieces.append(Piece(name, path, done.rowcount))
    return pieces


@contextmanager
def database(server: Server, name: str, template: str) -> Iterator[None]:
    """A database of our own, dropped afterwards."""
    with server.connect("postgres") as connection:
        connection.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        try:
            yield
        finally:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )


class Meter:
    """Counters around one load."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._server = postmaster(connection)
        connection.execute("checkpoint")
        self._started = self._read()

    def _read(self) -> tuple[float, int, float, float]:
        row = self._connection.execute(
            "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
        ).fetchone()
        assert row is not None
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic(), row[0], cpu_s(self._server), used.ru_utime + used.ru_stime

    def done(self) -> dict[str, Any]:
        """What the load took, as fields of `Load`."""
        names = ("wall_s", "wal_bytes", "server_cpu_s", "client_cpu_s")
        return {
            name: end - start
            for name, start, end in zip(names, self._started, self._read(), strict=True)
        }


def extent(server: Server, name: str) -> dict[str, int]:
    """Rows of all tables of a database, and its size, as fields of `Load`."""
    rows = 0
    with server.connect(name) as connection:
        for found, _ in connection.execute(_TABLES).fetchall():
            query = f"select count(*) from {found}"  # noqa: S608 - names from the catalogue
            count = connection.execute(query.encode()).fetchone()
            rows += count[0] if count else 0
        size = connection.execute("select pg_database_size(current_database())").fetchone()
    assert size is not None
    return {"rows": rows, "database_bytes": size[0]}


def plain(
    server: Server, name: str, shape: Shape, pieces: Sequence[Piece], sessions: int
) -> dict[str, Any]:
    """Copy the pieces into emptied tables and build the rest; fields of `Load`.

    Raises:
        Failure: Other rows are there than were written.
    """
    in_parallel(server, name, [*shape.unindex, f"truncate {', '.join(shape.tables)}"], 1)
    steps = {
        "copy": [
            f"copy {piece.table} from {sql.Literal(piece.path).as_string()} (format binary)"
            for piece in pieces
        ],
        "index": shape.index,
        "foreign keys": shape.foreign_keys,
        "vacuum": [f"vacuum (analyze) {found}" for found in shape.tables],
    }
    phases_s = {}
    with server.connect("postgres") as connection:
        meter = Meter(connection)
        for step, statements in steps.items():
            started_s = time.monotonic()
            in_parallel(server, name, statements, sessions)
            phases_s[step] = time.monotonic() - started_s
        taken = meter.done()
    found, written = extent(server, name), sum(piece.rows for piece in pieces)
    if found["rows"] != written:
        raise Failure(f"{found['rows']} rows arrived of {written}", "Look into the server's log.")
    return {**taken, **found, "phases_s": phases_s}


def loaded(server: Server, name: str, template: str, sessions: int, log: Path) -> dict[str, Any]:
    """Run a loader's command into a fresh database; fields of `Load`.

    Raises:
        Failure: It failed, or left no rows.
    """
    places = server.places(name) | {"connections": str(sessions)}
    with database(server, name, "template1"), server.connect("postgres") as connection:
        arguments = filled(template, places)
        meter = Meter(connection)
        with Command(arguments, log, server.environment()) as command:
            if command.wait(3600) != 0:
                raise command.failure("the loader failed")
            taken = meter.done()
        found = extent(server, name)
        if found["rows"] == 0:
            raise command.failure(f"no rows in database {name}")
        return {**taken, **found}


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("--conninfo", required=True, help="of the server, as a superuser")
    add("--source", required=True, help="a loaded database; nobody may be connected to it")
    add("--rows", type=Path, required=True, help="an empty folder that the server may write")
    add(
        "--loader",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="placeholders: {connections} {conninfo} {host} {port} {user} {database}",
    )
    add("--connections", type=int, default=2)
    add("--rounds", type=int, default=3)
    add("--scratch", default="benches_load", help="first part of our databases' names")
    add("--out", type=Path, required=True, help="JSON file, written after each load")
    return parser.parse_args(given)


def refuse(server: Server, options: argparse.Namespace, loaders: dict[str, str]) -> None:
    """Check what would be destroyed or cannot work, before anything is touched."""
    if min(options.connections, options.rounds) <= 0:
        raise Failure("connections or rounds is not positive", "Give at least 1.")
    if PLAIN in loaders:
        raise Failure(f"a loader is called {PLAIN}", "Give it another name.")
    if not options.rows.is_absolute() or not options.rows.is_dir() or any(options.rows.iterdir()):
        raise Failure(
            f"folder {options.rows} is relative, missing or not empty",
            "Make an empty folder that the server's user may write, and give its full path.",
        )
    with server.connect("postgres") as connection:
        found = connection.execute(
            "select datname from pg_database where starts_with(datname, %s)",
            [options.scratch + "_"],
        ).fetchone()
    if found:
        raise Failure(f"database {found[0]} exists", "Drop it, or choose another --scratch.")


def compare(options: argparse.Namespace) -> None:
    """Run all rounds, write the file after each load, print the table."""
    server, loaders = Server.parse(options.conninfo), named(options.loader, "--loader")
    refuse(server, options, loaders)
    document = {
        **surroundings(server, "postgres"),
        "loaders": loaders,
        "connections": options.connections,
    }
    shape = shape_of(server, options.source)
    loads: list[Load] = []
    try:
        pieces = dump(server, options.source, options.rows)
        copy = f"{options.scratch}_plain"
        with database(server, copy, options.source), tempfile.TemporaryDirectory() as folder:
            for number in range(options.rounds):
                for position, name in enumerate(rotated([PLAIN, *loaders], number)):
                    if name == PLAIN:
                        taken = plain(server, copy, shape, pieces, options.connections)
                    else:
                        own, log = f"{options.scratch}_{number}_{position}", Path(folder) / "log"
                        taken = loaded(server, own, loaders[name], options.connections, log)
                    loads.append(Load(name, number, position, **taken))
                    write_json(options.out, {**document, "loads": [asdict(one) for one in loads]})
                    print(
                        f"round {number + 1}/{options.rounds} {name}: {loads[-1].wall_s:.2f} s",
                        file=sys.stderr,
                    )
    finally:
        for path in options.rows.glob("*.bin"):
            path.unlink()
    print(markdown(loads, [PLAIN, *loaders]))


def main(given: Sequence[str] | None = None) -> int:
    """Compare; finished loads are kept in the file of --out."""
    options = arguments(given)
    return exit_code(lambda: compare(options))


if __name__ == "__main__":
    sys.exit(main())
