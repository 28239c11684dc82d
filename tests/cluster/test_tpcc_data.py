"""What a driven TPC-C database must show, and that our checks notice when it does not.

The database is loaded, driven for some seconds over several connections, and then looked at.
Plants and queries are data: `tests/data/violations.toml` and `tests/data/observations.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import check, loaded_workload
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Tpcc
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.host_facts import host_facts
from pgdyno.target.own_target import OwnTarget
from pgdyno.workload.describe import describe
from tests.cluster.conftest import OLD_VERSION_FIRST, TARGETS, WORKLOAD, Opener, loaded, settings_of
from tests.data.workloads import changed

pytestmark = pytest.mark.cluster
DATA = Path(__file__).parents[1] / "data"
VIOLATIONS = tomllib.loads((DATA / "violations.toml").read_text())["violation"]
OBSERVATIONS = tomllib.loads((DATA / "observations.toml").read_text())["observation"]
LOAD_CHECKS = describe(WORKLOAD).load_checks
PROTOCOL = Protocol(1, 1.0, 4.0, 10.0, False, 0.02, 0.95, Rung.D0)
MIX = {"new_order": 40.0, "payment": 36.0, "order_status": 8.0, "delivery": 8.0, "stock_level": 8.0}


def workload(**changes: Any) -> Workload:
    tpcc = Tpcc(2, mix=MIX, home="random")
    return replace(Workload("tpcc", 3, terminals=20, tpcc=tpcc), **changes)


@pytest.fixture(scope="module", params=OLD_VERSION_FIRST)
def target(request: pytest.FixtureRequest, session_home: Path) -> Iterator[OwnTarget]:
    user = postgres_user()
    binaries = find_binaries(TARGETS[request.param], user)
    memory = host_facts(session_home).memory_bytes
    facts = settings_of(request.param, binaries)
    target = OwnTarget(TARGETS[request.param], binaries, facts, user, session_home, memory)
    try:
        yield target
    finally:
        target.stop()
        target.close()


class Ran(NamedTuple):
    """A database that was driven, what the driver says of it, and what was seen before and after.

    Other tests drive it on, so what must be counted right away is counted here.
    """

    connection: Connection
    driven: Driven
    cardinalities: dict[str, str]  # of the freshly loaded database
    orders: int
    deadlocks: int


@pytest.fixture(scope="module")
def ran(target: OwnTarget) -> Ran:
    fixture = loaded(target)
    target.restore(fixture.ident)
    connection = target.apply(()).connection
    fresh = {one.name: str(number(connection, one.sql)) for one in LOAD_CHECKS}
    driven = drive(connection, workload(), PROTOCOL, fixture.loaded.c_load)
    orders = int(number(connection, "SELECT sum(d_next_o_id - 3001) FROM district"))
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    return Ran(connection, driven, fresh, orders, number(connection, deadlocks))


def number(connection: Connection, sql: str) -> Any:
    with psycopg.connect(**connection.arguments()) as session:
        row = session.execute(sql.encode()).fetchone()
    assert row is not None
    return row[0]


def broken(connection: Connection, plant: str) -> set[int]:
    """Conditions that a plant violates, in a transaction that is rolled back."""
    found = set()
    with psycopg.connect(**connection.arguments()) as session:
        session.execute(plant.encode())
        for condition in describe(WORKLOAD).conditions:
            if session.execute(condition.sql.encode()).fetchone() is not None:
                found.add(condition.number)
        session.rollback()
    return found


def test_a_loaded_database_has_the_texts_cardinalities(ran: Ran) -> None:
    assert ran.cardinalities == {one.name: str(one.expected) for one in LOAD_CHECKS}


def test_all_twelve_conditions_hold_after_a_run(ran: Ran) -> None:
    assert ran.driven.nopm > 0
    results = check(ran.connection, describe(WORKLOAD).conditions)

    assert [condition.number for condition in results] == list(range(1, 13))
    assert [condition for condition in results if not condition.ok] == []


@pytest.mark.parametrize(
    "violation",
    [
        pytest.param(one, id=one["name"], marks=pytest.mark.wide if at > 3 else ())
        for at, one in enumerate(VIOLATIONS)
    ],
)
def test_a_planted_violation_is_found(ran: Ran, violation: dict[str, Any]) -> None:
    found = broken(ran.connection, violation["plant"])

    assert set(violation["violates"]) <= found
    assert found.isdisjoint(violation.get("keeps", []))


@pytest.mark.parametrize("seen", OBSERVATIONS, ids=lambda one: f"trap {one['trap']}: {one['name']}")
def test_no_trap_was_fallen_into(ran: Ran, seen: dict[str, Any]) -> None:
    with psycopg.connect(**ran.connection.arguments()) as session:
        assert session.execute(seen["sql"].encode()).fetchmany(3) == []
        session.execute(seen["plant"].encode())
        assert session.execute(seen["sql"].encode()).fetchone() is not None, "it cannot fail"
        session.rollback()


def test_the_audit_of_the_inputs_is_in_its_bands(ran: Ran) -> None:
    audit = {line.name: line for line in ran.driven.audit}

    assert len(audit) >= 10
    # A band holds 99.9 % of right inputs: of twenty lines one may be out by chance, two hardly.
    assert len([line for line in audit.values() if not line.ok]) <= 1
    assert audit["New-Orders that ended otherwise than their input demands"].measured == 0


def test_counts_are_the_databases_own(ran: Ran) -> None:
    orders = next(kind for kind in ran.driven.kinds if kind.kind == "new_order")

    assert ran.orders == orders.run.succeeded
    assert orders.run.rolled_back > 0
    assert ran.driven.errors == ()


def test_trap_25_and_26_nothing_deadlocks_and_nothing_is_left_open(ran: Ran) -> None:
    idle = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"

    assert ran.deadlocks == 0
    assert number(ran.connection, idle) == 0


@pytest.mark.parametrize(
    "isolation", ["repeatable read", pytest.param("serializable", marks=pytest.mark.long)]
)
@pytest.mark.wide
def test_trap_22_stricter_isolation_retries_and_stays_consistent(ran: Ran, isolation: str) -> None:
    connection = ran.connection
    c_load = loaded_workload(connection).c_load
    driven = drive(connection, workload(isolation=isolation, seed=5), PROTOCOL, c_load)

    retries = sum(kind.run.retries_40001 for kind in driven.kinds)
    assert retries > 0, "eight connections on two warehouses must conflict"
    # Those that conflicted in every try are failed, and nothing else is.
    assert {error.sqlstate for error in driven.errors} <= {"40001"}
    assert all(c.ok for c in check(connection, describe(WORKLOAD).conditions))


def test_trap_23_sums_do_not_overflow(ran: Ran) -> None:
    with psycopg.connect(**ran.connection.arguments()) as session:
        for statement in (
            "UPDATE warehouse SET w_ytd = 9999999999.99",
            "UPDATE district SET d_ytd = 9999999999.99",
            "UPDATE customer SET c_ytd_payment = 9999999999.99 WHERE c_id = 1",
            "UPDATE stock SET s_ytd = 99999999 WHERE s_i_id = 1",
            "UPDATE warehouse SET w_ytd = w_ytd + 5000",
            "UPDATE district SET d_ytd = d_ytd + 5000",
            "UPDATE stock SET s_ytd = s_ytd + 10 WHERE s_i_id = 1",
        ):
            session.execute(statement.encode())
        session.rollback()


@pytest.mark.long
def test_foreign_keys_are_optional_and_hold(open_own: Opener, folder: Path) -> None:
    target = open_own("embedded-18", home=folder)
    spec = changed(WORKLOAD, warehouses=1, foreign_keys=True)
    connection = target.begin_fixture("keys")
    report = load(connection, spec, How(connections=2))
    keyed = workload(tpcc=Tpcc(1, foreign_keys=True, mix=MIX), terminals=8)
    driven = drive(connection, keyed, PROTOCOL, report.c_load)

    with psycopg.connect(**connection.arguments()) as session:
        row = session.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone()
    assert row is not None
    assert row[0] >= 9
    assert driven.nopm > 0
    assert driven.errors == ()
    assert all(c.ok for c in check(connection, describe(spec).conditions))
    target.drop_half_fixture()
