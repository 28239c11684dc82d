"""BenchmarkSQL 5's tables, transactions, files and checks, on a real server.

BenchmarkSQL itself is not run here: what was tried with it is told in
`docs/concepts/benchmarksql.md`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import check, loaded_workload
from pgdyno.loader.copy import How, load
from pgdyno.loader.csv_files import load_csv, read_folder
from pgdyno.loader.export import LOADED_AT_UNIX_S, export
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Tpcc
from pgdyno.workload.describe import describe, describe_tpcc
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import counted
from tests.data.workloads import tpcc
from tests.reachable import reachable_folder

pytestmark = [pytest.mark.cluster, pytest.mark.wide]
CHECKS = tomllib.loads((Path(__file__).parents[1] / "data/benchmarksql_checks.toml").read_text())
PROTOCOL = Protocol(1, 0.5, 2.0, 10.0, False, 0.02, 0.95, Rung.D0)
SPEC = tpcc(seed=5, schema="bmsql")


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with cluster_apart("embedded-18", "socket") as cluster:
        yield cluster.connection()


@pytest.fixture(scope="module")
def files() -> Iterator[Path]:
    """An export of the same rows."""
    for folder in reachable_folder("csv"):
        export(folder / "files", SPEC)
        yield folder / "files"


def database(server: Connection, name: str) -> Connection:
    with psycopg.connect(**server.arguments(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}".encode())
    return replace(server, database=name)


@pytest.fixture(scope="module")
def loaded(server: Connection) -> Connection:
    """One warehouse, as the loader fills it."""
    connection = database(server, "bmsql")
    load(connection, SPEC, How(connections=2), loaded_at_unix_s=LOADED_AT_UNIX_S)
    return connection


@pytest.fixture(scope="module")
def digests(loaded: Connection) -> dict[str, Any]:
    """Of the rows right after the load."""
    with psycopg.connect(**loaded.arguments()) as session:
        for one in describe(SPEC).load_checks:
            rows = session.execute(one.sql.encode()).fetchall()
            assert str(rows[0][0]) == str(one.expected), one.name
    return digests_of(loaded)


@pytest.fixture(scope="module")
def ran(loaded: Connection, digests: dict[str, Any]) -> list[Driven]:
    """The rules of BenchmarkSQL, then those of the text."""
    assert digests
    c_load = loaded_workload(loaded).c_load
    theirs = Tpcc(1, "bmsql", "benchmarksql-5", delivery="inline")
    text = Tpcc(1, "bmsql", home="random")
    workloads = (Workload("tpcc", seed=3, connections=4, terminals=4, tpcc=tpcc)
                 for tpcc in (theirs, text))  # fmt: skip
    return [drive(loaded, workload, PROTOCOL, c_load) for workload in workloads]


@pytest.fixture(scope="module")
def by_server(server: Connection, files: Path) -> Connection:
    """Filled as BenchmarkSQL's `tableCopies.sql` does: by the server, from its own disk."""
    connection = database(server, "by_server")
    files.chmod(0o755)
    described, tpcc = describe_tpcc(SPEC)
    with psycopg.connect(**connection.arguments()) as session:
        for table in described.tables:
            session.execute(table.ddl.encode())
        for file in tpcc.csv.files:
            null = "NULL AS 'NULL'" if file.name in ("order.csv", "order-line.csv") else ""
            session.execute(
                f"COPY {file.table} ({file.columns})"
                f" FROM '{files / file.name}' WITH CSV {null}".encode()
            )
    return connection


def digests_of(connection: Connection) -> dict[str, Any]:
    """Of each table: rows, and a sum of hashes that does not mind their order."""
    found = {}
    with psycopg.connect(**connection.arguments()) as session:
        for table in describe(SPEC).tables:
            sql = f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {table.name} AS t"
            found[table.name] = session.execute(sql.encode()).fetchone()
    return found


def one(connection: Connection, sql: str) -> Any:
    with psycopg.connect(**connection.arguments()) as session:
        return session.execute(sql.encode()).fetchone()


def test_both_rules_run_without_an_error_and_keep_all_conditions(
    loaded: Connection, ran: list[Driven]
) -> None:
    for driven in ran:
        assert driven.nopm > 0
        assert driven.errors == ()
        assert all(kind.run.succeeded > 0 for kind in driven.kinds)
    results = check(loaded, describe(SPEC).conditions)
    assert [condition for condition in results if not condition.ok] == []


@pytest.mark.parametrize("seen", CHECKS["check"], ids=lambda seen: seen["name"])
def test_a_check_of_benchmarksqls_own_passes(
    loaded: Connection, ran: list[Driven], seen: dict[str, Any]
) -> None:
    assert ran
    with psycopg.connect(**loaded.arguments()) as session:
        assert session.execute(seen["sql"].encode()).fetchmany(3) == []
        session.execute(seen["plant"].encode())
        assert session.execute(seen["sql"].encode()).fetchone() is not None, "it cannot fail"
        session.rollback()


def test_histories_are_numbered_on(loaded: Connection, ran: list[Driven]) -> None:
    payments = sum(
        kind.run.succeeded for driven in ran for kind in driven.kinds if kind.kind == "payment"
    )
    row = one(loaded, "SELECT count(*), count(DISTINCT hist_id), min(hist_id) FROM bmsql_history")

    assert row == (30_000 + payments, 30_000 + payments, 1)


def test_files_hold_the_same_rows_as_a_load(
    server: Connection, files: Path, digests: dict[str, Any]
) -> None:
    connection = database(server, "from_csv")
    report = load_csv(connection, read_folder(files), foreign_keys=True)

    due = counted(connection, tuple(digests))
    assert due == dict.fromkeys(digests, (0, 0, 0)), "autovacuum has nothing to do"
    assert digests_of(connection) == digests
    assert report.rows == sum(rows for rows, _ in digests.values())
    assert loaded_workload(connection).foreign_keys
    assert all(condition.ok for condition in check(connection, describe(SPEC).conditions))
    names = (
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conname ~ '^[a-z]+_.*_fkey$'"
    )
    assert one(connection, names) == (10,)
    with pytest.raises(DriveError, match=r"index public.bmsql_\w+, .* the import would create"):
        load_csv(connection, read_folder(files))


def test_the_server_itself_copies_the_files(by_server: Connection, digests: dict[str, Any]) -> None:
    assert digests_of(by_server) == digests


def test_a_broken_file_leaves_nothing_behind(server: Connection, files: Path) -> None:
    connection = database(server, "broken")
    stock = files / "stock.csv"
    whole = stock.read_bytes()
    try:
        stock.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
        with pytest.raises(DriveError, match=r"stock.csv has 99,999 rows, 1 warehouse has"):
            load_csv(connection, read_folder(files))
        stock.write_bytes(whole[:-30] + b"\n")
        with pytest.raises(DriveError, match=r"copy .*stock.csv: missing data for column"):
            load_csv(connection, read_folder(files))
    finally:
        stock.write_bytes(whole)

    assert one(connection, "SELECT count(*) FROM pg_class WHERE relname ~ 'bmsql|pgdyno'") == (0,)


@pytest.fixture
def by_its_loader(by_server: Connection) -> Iterator[Connection]:
    """Its loader, unlike its files, counts deliveries from 1 and not from 0."""
    change = "UPDATE bmsql_customer SET c_delivery_cnt = %s"
    with psycopg.connect(**by_server.arguments(), autocommit=True) as session:
        session.execute(change, [1])
        yield by_server
        session.execute(change, [0])


def test_a_database_that_benchmarksql_loaded_is_known(by_its_loader: Connection) -> None:
    by_server = by_its_loader
    known = loaded_workload(by_server)

    assert (known.schema, known.warehouses, known.seed) == ("bmsql", 1, None)
    assert known.c_load == {**describe_tpcc(SPEC)[1].c_load, "c_delivery_cnt": 1}
    results = check(by_server, known.described().conditions)
    assert [condition for condition in results if not condition.ok] == []
    # Counted from 0 they would not add up.
    eleventh = describe(SPEC).conditions[10:11]
    assert not check(by_server, eleventh)[0].ok
