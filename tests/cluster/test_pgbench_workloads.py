"""pgbench's workloads, scripts and mixes beside pgbench itself, on either one's tables."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest

from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import check, require
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Data, Mix, Pgbench, Script, SourceFile
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.workload.describe import describe
from tests.cluster.conftest import TARGETS, cluster_apart
from tests.data.workloads import changed
from tests.data.workloads import tpcb as of_branches

pytestmark = pytest.mark.cluster
PROTOCOL = Protocol(1, 0.1, 0.6, 10.0, False, 0.02, 0.95, Rung.D0)
TPCB = of_branches()

Kind = Literal["tpcb", "simple-update", "select-only"]
Face = Literal["statement", "pipeline", "procedure"]


@pytest.fixture(scope="module")
def binaries() -> Binaries:
    return find_binaries(TARGETS["embedded-18"], postgres_user())


@pytest.fixture(scope="module")
def fresh() -> Iterator[Callable[[], Connection]]:
    """Makes an empty database on a server of the tests."""
    numbers = count()
    with cluster_apart("embedded-18", "socket") as cluster:
        first = cluster.connection()

        def make() -> Connection:
            name = f"pgbench{next(numbers)}"
            with psycopg.connect(**first.arguments(), autocommit=True) as session:
                session.execute(f"CREATE DATABASE {name}".encode())
            return replace(first, database=name)

        yield make


@pytest.fixture(scope="module")
def ours(fresh: Callable[[], Connection]) -> Connection:
    """Tables that we loaded."""
    connection = fresh()
    load(connection, TPCB, How(connections=2))
    return connection


@pytest.fixture(scope="module")
def theirs(fresh: Callable[[], Connection], binaries: Binaries) -> Connection:
    """Tables that pgbench loaded."""
    connection = fresh()
    pgbench(binaries, connection, "-i", "-s", "1", "-q")
    return connection


def pgbench(binaries: Binaries, there: Connection, *args: str | Path) -> str:
    done = subprocess.run(
        [binaries.program("pgbench"), *args, "-h", there.host, "-p", str(there.port),
         "-U", there.user, there.database],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def tpcb(kind: Kind = "tpcb", face: Face = "statement") -> Workload:
    return Workload(kind=kind, seed=5, face=face, connections=2, terminals=2, pgbench=Pgbench(1))


def script(*texts: str) -> Workload:
    files = tuple(SourceFile(f"{at}.sql", text) for at, text in enumerate(texts))
    return Workload("script", 5, connections=2, terminals=2, script=Script(files, Data()))


def mix(text: str) -> Workload:
    own = Mix(SourceFile("mix.toml", text), Data())
    return Workload("mix", 5, connections=2, terminals=2, mix=own)


def driven(connection: Connection, workload: Workload) -> Driven:
    """Drives a second; nothing may fail."""
    result = drive(connection, workload, PROTOCOL, None)
    assert result.errors == (), result.errors
    assert all(kind.window.succeeded > 0 for kind in result.kinds)
    return result


def holds(connection: Connection, workload: Workload) -> None:
    require(check(connection, describe(workload).conditions))


def rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        return session.execute(sql.encode()).fetchall()


SHAPE = """
SELECT 'column', table_name, column_name, ordinal_position, data_type,
       character_maximum_length, is_nullable
FROM information_schema.columns WHERE table_name LIKE 'pgbench%'
UNION ALL
SELECT 'table', relname, array_to_string(reloptions, ','), 0, relkind::text, relnatts::int,
       relpersistence::text
FROM pg_class WHERE relname LIKE 'pgbench%'
UNION ALL
SELECT 'key', conrelid::regclass::text, conname, 0, pg_get_constraintdef(oid), 0, contype::text
FROM pg_constraint WHERE conrelid::regclass::text LIKE 'pgbench%'
ORDER BY 1, 2, 4, 3"""


def test_tables_and_rows_are_those_of_pgbench(
    fresh: Callable[[], Connection], binaries: Binaries
) -> None:
    pair = fresh(), fresh()
    load(pair[0], changed(TPCB, foreign_keys=True), How(connections=2))
    pgbench(binaries, pair[1], "-i", "-s", "1", "-q", "--foreign-keys")

    assert rows(pair[0], SHAPE) == rows(pair[1], SHAPE)
    for table in ("accounts", "branches", "tellers", "history"):
        text = f"SELECT md5(string_agg(t::text, ',' ORDER BY t)) FROM pgbench_{table} AS t"
        assert rows(pair[0], text) == rows(pair[1], text), table
    holds(pair[0], TPCB)


@pytest.mark.parametrize("face", ["statement", "pipeline", "procedure"])
def test_our_tpcb_runs_on_pgbenchs_tables(theirs: Connection, face: Face) -> None:
    result = driven(theirs, tpcb(face=face))

    assert result.statements_per_transaction == (1 if face == "procedure" else 7)
    assert result.round_trips_per_transaction == (7 if face == "statement" else 1)
    assert all(line.low <= line.measured <= line.high for line in result.audit), result.audit
    holds(theirs, TPCB)


def test_pgbench_runs_on_our_tables(ours: Connection, binaries: Binaries) -> None:
    for mode in ("simple", "prepared"):
        said = pgbench(binaries, ours, "-n", "-M", mode, "-c", "2", "-t", "50")
        assert "number of transactions actually processed: 100/100" in said
    holds(ours, TPCB)


def test_the_other_kinds_run_on_our_tables(fresh: Callable[[], Connection]) -> None:
    connection = fresh()
    load(connection, TPCB, How(connections=2))
    cases: tuple[tuple[Kind, Face, int], ...] = (
        ("simple-update", "pipeline", 5),
        ("simple-update", "procedure", 1),
        ("select-only", "statement", 1),
    )
    for kind, face, statements in cases:
        result = driven(connection, tpcb(kind, face))
        assert result.statements_per_transaction == statements
    holds(connection, replace(TPCB, kind="simple-update"))
    (violated,) = [c for c in check(connection, describe(TPCB).conditions) if not c.ok][-1:]
    assert violated.title == "the sums of ABALANCE, TBALANCE and BBALANCE are the same"


def test_latencies_of_statements_cover_the_transactions(theirs: Connection) -> None:
    (kind,) = driven(theirs, tpcb()).kinds
    timed = {one.name: one.count for one in kind.statements}

    assert timed == dict.fromkeys(
        ("begin", "accounts_update", "accounts_select", "tellers_update", "branches_update",
         "history_insert", "end"), kind.window.timed,
    )  # fmt: skip
    middles = sum(one.ns["mean"] for one in kind.statements)
    assert 0.5 * kind.service_ns["mean"] < middles <= 1.01 * kind.service_ns["mean"]
    (batch,) = driven(theirs, tpcb(face="pipeline")).kinds[0].statements
    assert batch.name == "begin+accounts_update+…+end (7)"


SCRIPT = r"""
\set aid random_zipfian(1, 100000 * :scale, 1.1)
\set delta random(-50, 50)
BEGIN;
SELECT abalance, bid AS b FROM pgbench_accounts WHERE aid = :aid FOR UPDATE \gset acc_
\if :acc_abalance + :delta < 0
  UPDATE pgbench_accounts SET abalance = 0 WHERE aid = :aid;
\else
  \startpipeline
  UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
  UPDATE pgbench_branches SET bbalance = bbalance + 0 * :delta WHERE bid = :acc_b;
  \endpipeline
\endif
\sleep 100 us
END;
"""


def test_a_script_with_conditions_and_answers_runs_as_in_pgbench(
    fresh: Callable[[], Connection], binaries: Binaries, folder: Path
) -> None:
    connection = fresh()
    load(connection, TPCB, How(connections=2))
    file = folder / "script.sql"
    file.write_text(SCRIPT)
    said = pgbench(binaries, connection, "-n", "-M", "prepared", "-f", file, "-t", "20")
    assert "number of transactions actually processed: 20/20" in said

    result = driven(connection, script(SCRIPT, "SELECT 1;"))

    assert [kind.kind for kind in result.kinds] == ["0.sql", "1.sql"]
    named = {one.name for one in result.kinds[0].statements}
    assert {"0.sql:4", "0.sql:5", "0.sql:10+0.sql:11", "0.sql:15"} <= named
    balances = "SELECT min(abalance), count(*) FILTER (WHERE abalance > 0) FROM pgbench_accounts"
    low, moved = rows(connection, balances)[0]
    assert low == 0, "the condition keeps balances above 0"
    assert moved > 0


MIX = """
[variables]
accounts = ":scale * 100000"

[[transactions]]
name = "look"
weight = 3
read_only = true
statements = [{ sql = "SELECT abalance FROM pgbench_accounts WHERE aid = :id", rows = 1 }]
params.id = { type = "int", zipf = [1, ":accounts", 0.99] }

[[transactions]]
name = "move"
isolation = "serializable"
statements = [
  "UPDATE pgbench_accounts SET abalance = abalance - :amount WHERE aid = :giver",
  "UPDATE pgbench_accounts SET abalance = abalance + :amount WHERE aid = :taker",
]
params.giver = { type = "int", uniform = [1, 50] }
params.taker = { type = "int", value = ":giver % 50 + 1" }
params.amount = { type = "int", normal = [1, 9, 2.0] }

[[invariants]]
title = "nothing is lost"
sql = "SELECT sum(abalance) FROM pgbench_accounts HAVING sum(abalance) <> 0"
"""
UNBALANCE = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 7 RETURNING 1"


def test_a_mix_keeps_its_invariant_and_a_breach_is_seen(fresh: Callable[[], Connection]) -> None:
    connection = fresh()
    load(connection, TPCB, How(connections=2))

    result = driven(connection, mix(MIX))

    look, move = result.kinds
    assert (look.kind, move.kind) == ("look", "move")
    assert all(line.low <= line.measured <= line.high for line in result.audit), result.audit
    assert rows(connection, "SELECT count(*) > 1 FROM pgbench_accounts WHERE abalance <> 0")[0][0]
    holds(connection, mix(MIX))
    rows(connection, UNBALANCE)
    (condition,) = check(connection, describe(mix(MIX)).conditions)
    assert (condition.title, condition.violations) == ("nothing is lost", 1)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("SELECT 1;\n\\foo", "0.sql, line 2: meta command \\foo is unknown"),
        ("SELECT :nobody;", "0.sql, line 1: variable :nobody is never set"),
        (
            "\n\nSELECT nothing FROM nowhere;",
            ': prepare 0.sql:3: relation "nowhere" does not exist',
        ),
        ("SELECT 1;\nSELEKT 2;", "prepare 0.sql:2: syntax error at or near"),
        ("\\set x 1 +\nSELECT 1;", "0.sql, line 1: expression ends where a value is expected"),
    ],
)
def test_scripts_that_cannot_run_say_why(theirs: Connection, text: str, fact: str) -> None:
    with pytest.raises((DriveError, PlanError)) as refused:
        drive(theirs, script(text), PROTOCOL, None)
    assert fact in refused.value.fact
    assert "connect to" not in refused.value.fact, "the server let us in"


def test_errors_of_a_transaction_are_told_with_their_line(theirs: Connection) -> None:
    texts = ("SELECT 1;\n\\set x 1 / (:client_id - :client_id)\nSELECT :x;", "SELECT 1;")
    result = drive(theirs, script(*texts), PROTOCOL, None)

    (error,) = result.errors
    assert (error.sqlstate, error.example) == ("answer", "0.sql, line 2: division by zero")
    assert result.kinds[0].window.succeeded == 0
    assert result.kinds[1].window.failed == 0


def test_accounts_that_are_missing_fail_the_transaction(theirs: Connection) -> None:
    larger = Workload(kind="select-only", seed=1, connections=1, terminals=1, pgbench=Pgbench(100))
    result = drive(theirs, larger, PROTOCOL, None)

    (error,) = result.errors
    assert "the database has another scale than 100" in error.example
