"""The three faces of TPC-C against real servers.

One terminal leaves the same database behind through each of them, and several leave a right one,
also where transactions must be repeated.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import check
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Face, Tpcc
from pgdyno.sample.server_log import read_log
from pgdyno.workload.describe import describe, describe_tpcc
from tests.cluster.conftest import WORKLOAD, Opener, loaded

pytestmark = pytest.mark.cluster
OBSERVED = Path(__file__).parents[1] / "data" / "observations.toml"
FACES: tuple[Face, ...] = get_args(Face)
REQUESTS = 400
MIX = {"new_order": 40.0, "payment": 36.0, "order_status": 8.0, "delivery": 8.0, "stock_level": 8.0}

# What differs between two runs of the same requests: when they ran. Whether there is a date stays.
CLOCK = {
    "orders": {"o_entry_d": "NULL"},
    "order_line": {"ol_delivery_d": "ol_delivery_d IS NULL"},
    "history": {"h_date": "NULL"},
}
# A sum of hashes does not depend on the order in which the rows lie.
CONTENT = """
SELECT count(*), coalesce(sum(hashtextextended(ROW({columns})::text, 0)::numeric), 0) FROM {table}
"""
COLUMNS = """
SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema()
AND table_name = %s ORDER BY ordinal_position
"""


def workload(face: Face, **changes: Any) -> Workload:
    """Deliveries are waited for, so that one terminal asks for one thing after the other."""
    tpcc = Tpcc(2, mix=MIX, home="random", delivery="inline")
    return replace(Workload("tpcc", 5, face=face, tpcc=tpcc), **changes)


def protocol(window_s: float) -> Protocol:
    return Protocol(1, 0.0, window_s, 10.0, False, 0.02, 0.95, Rung.D0)


def content(session: psycopg.Connection[Any], name: str) -> tuple[int, int]:
    """Rows of a table, and a sum over all that is in them but the time of the run."""
    columns = [
        CLOCK.get(name, {}).get(column, column)
        for (column,) in session.execute(COLUMNS, [name]).fetchall()
    ]
    sql = CONTENT.format(columns=", ".join(columns), table=name)
    row = session.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


@pytest.mark.wide
def test_one_terminal_leaves_the_same_database_through_every_face(open_own: Opener) -> None:
    target = open_own("embedded-18")
    fixture = loaded(target)
    tables = [table.name for table in describe(WORKLOAD).tables]
    states, counts = {}, {}
    for face in FACES:
        target.restore(fixture.ident)
        connection = target.apply(()).connection
        asked = workload(face, connections=1, terminals=1, requests_max=REQUESTS)
        driven = drive(connection, asked, protocol(900.0), fixture.loaded.c_load)
        counts[face] = {kind.kind: kind.run for kind in driven.kinds}
        assert driven.errors == (), face
        with psycopg.connect(**connection.arguments()) as session:
            states[face] = {name: content(session, name) for name in tables}
            session.execute(
                "UPDATE district SET d_ytd = d_ytd + 0.01 WHERE (d_w_id, d_id) = (1, 1)"
            )
            assert content(session, "district") != states[face]["district"], "it cannot fail"
            session.rollback()
        target.stop()

    assert sum(run.due for run in counts["statement"].values()) == REQUESTS
    assert all(run.succeeded > 0 for run in counts["statement"].values())
    assert counts["statement"]["new_order"].rolled_back > 0
    for face in FACES:
        assert states[face] == states["statement"], face
        assert counts[face] == counts["statement"], face


CONTENDED = [
    pytest.param("debian-15", "pipeline", "read committed", marks=pytest.mark.wide),
    pytest.param("debian-15", "procedure", "read committed", marks=pytest.mark.long),
    pytest.param("embedded-18", "pipeline", "repeatable read", marks=pytest.mark.long),
    pytest.param("embedded-18", "procedure", "serializable", marks=pytest.mark.wide),
]


@pytest.mark.parametrize(("name", "face", "isolation"), CONTENDED)
def test_many_terminals_leave_a_right_database(
    open_own: Opener, name: str, face: Face, isolation: str
) -> None:
    target = open_own(name)
    fixture = loaded(target)
    target.restore(fixture.ident)
    connection = target.apply(()).connection
    asked = workload(face, connections=8, terminals=20, isolation=isolation)
    driven = drive(connection, asked, protocol(2.0), fixture.loaded.c_load)

    orders = next(kind for kind in driven.kinds if kind.kind == "new_order")
    with psycopg.connect(**connection.arguments()) as session:
        for seen in tomllib.loads(OBSERVED.read_text())["observation"]:
            assert session.execute(seen["sql"].encode()).fetchmany(3) == [], seen["name"]
        row = session.execute("SELECT sum(d_next_o_id - 3001) FROM district").fetchone()
        deadlocks = session.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row == (orders.run.succeeded,)
    assert deadlocks == (0,)
    failed = [one for one in check(connection, describe(WORKLOAD).conditions) if not one.ok]
    assert failed == []
    _assert_repeated_or_not(driven, isolation)
    if isolation == "read committed":
        errors = [line for line in read_log(target.log_lines() or ()).bad if "ERROR" in line]
        assert errors == [], "an order that is rolled back is no error"


def _assert_repeated_or_not(driven: Driven, isolation: str) -> None:
    runs = [kind.run for kind in driven.kinds]
    repeated = sum(run.retries_40001 for run in runs)
    assert sum(run.unknown for run in runs) == 0
    if isolation == "read committed":
        assert (repeated, driven.errors) == (0, ())
    else:
        assert repeated > 0
        assert {error.sqlstate for error in driven.errors} <= {"40001"}


def _leftmost(node: dict[str, Any]) -> dict[str, Any]:
    return _leftmost(node["Plans"][0]) if "Plans" in node else node


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", []):
        yield from _nodes(below)


@pytest.mark.wide
def test_the_procedure_locks_stock_in_the_order_of_its_lines(open_own: Opener) -> None:
    """UPDATE ... FROM may join in any order; this one takes the lines as they come."""
    target = open_own("embedded-18")
    target.restore(loaded(target).ident)
    connection = target.apply(()).connection
    _, tpcc = describe_tpcc(replace(WORKLOAD, face="procedure"))
    plans: list[dict[str, Any]] = []

    def keep(diagnostic: psycopg.errors.Diagnostic) -> None:
        text = diagnostic.message_primary or ""
        if "taken" in text and "plan:" in text:
            plans.append(json.loads(text.split("plan:", 1)[1]))

    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        for procedure in tpcc.procedures:
            session.execute(procedure.sql.encode())
        session.add_notice_handler(keep)
        session.execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; "
            "SET auto_explain.log_nested_statements = on; SET auto_explain.log_format = json; "
            "SET client_min_messages = log"
        )
        for order in range(12):  # the plan of the sixth call is kept from then on
            lines = [list(range(1, 16)), [1000 * n + order for n in range(1, 16)], [1] * 15,
                     [5] * 15, [1] * 15]  # fmt: skip
            session.execute(
                "CALL pgdyno_new_order(1, 2, 3, localtimestamp, 1, %s::integer[], %s::integer[], "
                "%s::integer[], %s::integer[], %s::integer[], 1" + ", NULL" * 11 + ")",
                lines,
            )

    updates = [
        node
        for plan in plans
        for node in _nodes(plan["Plan"])
        if node.get("Operation") == "Update" and node["Relation Name"] == "stock"
    ]
    assert len(updates) == 12
    for update in updates:
        joins = [node["Node Type"] for node in _nodes(update) if "Join Type" in node]
        assert joins == ["Nested Loop", "Nested Loop"]
        assert _leftmost(update)["Node Type"] == "Function Scan"
