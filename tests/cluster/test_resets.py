"""Statistics that are reset within a window: known on real servers though nothing fell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.model.description import Description, PreparedSql
from pgdyno.model.resets import began_anew
from pgdyno.model.statement_counts import statement_growth
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Snapshot, Subject
from pgdyno.sample.samplers import server_resets, server_statements
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster
TAKE = "UPDATE seen SET b = b + 1 WHERE a = $1"
WORKLOAD = Description("mix", 1, kinds=("take",), statements=(PreparedSql("take.1", TAKE),))
RESETS = {
    "all statements": "SELECT pg_stat_statements_reset()",
    "the statement": "SELECT pg_stat_statements_reset(0, 0, {queryid})",
    "the table": "SELECT pg_stat_reset_single_table_counters('seen'::regclass)",
    "the WAL": "SELECT pg_stat_reset_shared('wal')",
}


@pytest.fixture(scope="module", params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def session(
    request: pytest.FixtureRequest, session_home: object
) -> Iterator[psycopg.Connection[Any]]:
    """Of a server with a table, which counts statements."""
    settings = {"shared_preload_libraries": "pg_stat_statements", "compute_query_id": "on"}
    with (
        pgdyno.Server(settings, bindir=request.param) as running,
        psycopg.connect(**running.connection.arguments(), autocommit=True) as session,
    ):
        session.execute("CREATE TABLE seen AS SELECT i AS a, i AS b FROM generate_series(1, 9) i")
        session.execute("CREATE EXTENSION pg_stat_statements")
        yield session


@pytest.mark.parametrize("what", RESETS)
def test_a_reset_is_known_though_counters_outgrew_what_they_were(
    session: psycopg.Connection[Any], what: str
) -> None:
    subject = Subject(session, ["postgres"], described=WORKLOAD)
    found = server_statements.sampler(subject)
    assert isinstance(found, list)
    counts, statements = (one for one in found if isinstance(one, Snapshot))
    resets = server_resets.sampler(subject)
    assert isinstance(resets, Snapshot)
    recorder = Recorder([resets, counts, statements])

    def entry() -> Any:
        (row,) = (row for row in statements.take() if row["statement"] == "take.1")
        return row

    taken = TAKE.replace("$1", "%s").encode()
    session.execute("SELECT pg_stat_statements_reset()")
    session.execute(taken, (2,), prepare=True)
    with recorder:
        recorder.window_begins()
        until(lambda: len(recorder.snapshots()) == 3, "the first look")
        before = entry()
        session.execute(RESETS[what].format(queryid=before["queryid"]).encode())
        for _ in range(9):
            session.execute(taken, (2,), prepare=True)
        recorder.window_ends()
    growth = statement_growth(recorder.snapshots())

    assert growth is not None
    assert entry()["calls"] > before["calls"], "nothing fell"
    since_17 = session.info.server_version >= 170_000
    told = what == "all statements" or (what == "the statement" and since_17)
    kept = {row["statement"]: grown["calls"] for row, grown in growth.grown}
    grown = 8 if what == "the statement" else 9  # a version that does not tell counts one too few
    assert kept.get("take.1") == (None if told else grown)
    assert began_anew(recorder.snapshots()) == {
        "the table": {"pg_stat_database"}, "the WAL": {"pg_stat_wal"},
    }.get(what, set())  # fmt: skip
