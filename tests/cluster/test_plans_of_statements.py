"""Every statement of our workloads has a plan, as a session of the samplers asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import psycopg
import pytest

import pgdyno
from pgdyno.model.workload import Face, Pgbench, Schema, Tpcc, Workload, WorkloadKind
from pgdyno.sample.sampler import Snapshot, Subject
from pgdyno.sample.samplers import server_plans
from pgdyno.workload.describe import describe
from tests.cluster.conftest import DEBIAN_BINDIR

pytestmark = pytest.mark.cluster
FACES: tuple[Face, ...] = get_args(Face)
BUILT_IN: tuple[WorkloadKind, ...] = ("tpcb", "simple-update", "select-only")
WITHOUT_PLAN = {"BEGIN", "COMMIT", "ROLLBACK", "END", "CALL"}
CALLED = "CREATE OR REPLACE FUNCTION {}(int, int, int, int) RETURNS int LANGUAGE sql AS 'SELECT 1'"


@pytest.fixture(scope="module", params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def session(
    request: pytest.FixtureRequest, session_home: object
) -> Iterator[psycopg.Connection[Any]]:
    """Of a server whose tables are there and empty: a statement has a plan without rows, too."""
    with (
        pgdyno.Server(bindir=request.param) as running,
        psycopg.connect(**running.connection.arguments(), autocommit=True) as session,
    ):
        several = [tpcc("spec", "procedure"), tpcc("bmsql", "statement"), built_in("tpcb")]
        for described in map(describe, several):
            for ddl in (*(table.ddl for table in described.tables), *described.indexes):
                session.execute(ddl.encode())
        for function in ("pgdyno_tpcb", "pgdyno_simple_update"):
            session.execute(CALLED.format(function).encode())
        yield session


def tpcc(schema: Schema, face: Face) -> Workload:
    return Workload("tpcc", 7, face=face, tpcc=Tpcc(1, schema))


def built_in(kind: WorkloadKind, face: Face = "statement") -> Workload:
    return Workload(kind, 7, face=face, pgbench=Pgbench(1))


@pytest.mark.parametrize(
    "workload",
    [
        *(tpcc("spec", face) for face in FACES),
        *(tpcc("bmsql", face) for face in FACES),
        *(built_in(kind, face) for kind in BUILT_IN for face in FACES
          if (kind, face) != ("select-only", "procedure")),
    ],
    ids=lambda one: "-".join((one.kind, one.face, one.tpcc.schema if one.tpcc else "")).strip("-"),
)  # fmt: skip
def test_every_statement_has_a_plan(session: psycopg.Connection[Any], workload: Workload) -> None:
    described = describe(workload)
    if described.tpcc is not None:
        for procedure in described.tpcc.procedures:
            session.execute(procedure.sql.encode())

    found = server_plans.sampler(Subject(session, ["postgres"], described=described))
    assert isinstance(found, Snapshot)
    rows = {row["statement"]: row for row in found.take()}

    assert {name: row["error"] for name, row in rows.items() if row["error"]} == {}
    assert all(row["shape"] and row["plan"] for row in rows.values())
    assert rows.keys() == {
        one.name for one in described.statements if one.sql.split()[0] not in WITHOUT_PLAN
    }
