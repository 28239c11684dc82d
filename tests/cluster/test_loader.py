"""Loads that differ in how they go about it leave the same rows: partitions, order, additions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pgdyno.loader.consistency import check, require
from pgdyno.loader.copy import How, estimate, load
from pgdyno.loader.room import require_room, room_text
from pgdyno.loader.setup import run_setup
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.loading import LoadEstimate, LoadReport
from pgdyno.model.workload import SourceFile
from pgdyno.target.server_host import server_host_of
from pgdyno.workload.describe import describe
from tests.cluster.conftest import VERSIONS, cluster_apart
from tests.cluster.loading import (
    LOADED_AT,
    PGBENCH,
    TABLES,
    Scale,
    Written,
    contents,
    counted,
    keys,
    new_database,
    pages,
    run,
)
from tests.data.workloads import changed, tpcb, tpcc

pytestmark = pytest.mark.cluster
SPEC = tpcc(2, foreign_keys=True)
TWO = How(connections=2)


@dataclass(frozen=True, slots=True)
class Direct:
    """A server, with a plain load of two warehouses in a database."""

    server: Connection
    minimal: bool  # its wal_level
    connection: Connection
    estimated: LoadEstimate
    report: LoadReport
    written: Written
    contents: dict[str, Any]

    def loaded(self, name: str, how: How = TWO, **changes: Any) -> Connection:
        """Another load, into a database of its own."""
        connection = new_database(self.server, name)
        load(connection, changed(SPEC, **changes), how, loaded_at_unix_s=LOADED_AT)
        return connection


@pytest.fixture(scope="module", params=VERSIONS)
def direct(request: pytest.FixtureRequest) -> Iterator[Direct]:
    with cluster_apart(request.param, "socket") as cluster:
        server = cluster.connection()
        minimal = request.param == "embedded-18"
        run(server, "ALTER SYSTEM SET autovacuum = off")  # it would write WAL as well
        if minimal:
            run(server, "ALTER SYSTEM SET wal_level = minimal")
            run(server, "ALTER SYSTEM SET max_wal_senders = 0")
        cluster.stop(clean=True)
        cluster.start([])
        connection = new_database(server, "direct")
        estimated = estimate(connection, SPEC, TWO)
        scale = Scale(connection)
        report = load(connection, SPEC, TWO, loaded_at_unix_s=LOADED_AT)
        written = scale.written()
        yield Direct(server, minimal, connection, estimated, report, written, contents(connection))


def test_a_load_is_complete_and_says_what_it_chose(direct: Direct) -> None:
    require(check(direct.connection, describe(SPEC).conditions))
    for one in describe(SPEC).load_checks:
        assert str(run(direct.connection, one.sql)[0][0]) == str(one.expected), one.name
    chosen = {choice.name: choice.value for choice in direct.report.choices}
    assert chosen["format"] == "binary"
    assert chosen["copies"] == "one COPY FREEZE for each table or partition"
    assert sum(count for count, _ in direct.contents.values()) == direct.report.rows


@pytest.mark.wide
def test_the_estimate_is_within_five_percent(direct: Direct) -> None:
    for size in (direct.written.size_bytes, direct.report.disk_bytes):
        assert direct.estimated.disk_bytes == pytest.approx(size, rel=0.05)
    assert direct.estimated.rows == direct.report.rows
    assert (direct.estimated.seconds or 0.0) > 0


def test_wal_is_skipped_where_the_server_allows(direct: Direct) -> None:
    share = direct.written.wal_bytes / direct.written.size_bytes
    # Catalogues, and tables below wal_skip_threshold, are written all the same.
    assert share < 0.1 if direct.minimal else share > 0.5
    expected = 0 if direct.minimal else direct.estimated.disk_bytes
    assert direct.estimated.wal_bytes == expected


def test_the_server_is_seen_where_it_is(direct: Direct) -> None:
    place = server_host_of(direct.connection)
    assert place.memory_bytes is not None
    assert place.memory_bytes > 1 << 28
    assert place.data is not None
    assert place.wal is not None
    assert place.data.free_bytes > 0
    assert (place.wal_there_bytes or 0) >= 1 << 24
    require_room(direct.estimated, place)
    assert room_text(direct.estimated, place).startswith("2 warehouses will take 21")


@pytest.mark.parametrize("copies", ["tables", pytest.param("batches", marks=pytest.mark.wide)])
def test_no_table_is_due_for_autovacuum(direct: Direct, copies: Any) -> None:
    """Else it would vacuum what is vacuumed, within a minute of each trial."""
    connection = direct.connection
    if copies == "batches":
        connection = direct.loaded("counted", How(connections=4, copies=copies))
    assert counted(connection, TABLES) == dict.fromkeys(TABLES, (0, 0, 0))


def test_what_a_setup_makes_is_not_due_either(direct: Direct) -> None:
    setup = SourceFile(
        "s.sql",
        "CREATE TABLE made AS SELECT FROM generate_series(1, 5000);"
        " INSERT INTO made SELECT FROM generate_series(1, 5000); DELETE FROM made",
    )
    run_setup(direct.connection, setup)
    assert counted(direct.connection, ("made",)) == {"made": (0, 0, 0)}


@pytest.mark.parametrize("copies", ["tables", pytest.param("batches", marks=pytest.mark.wide)])
def test_all_pages_are_visible_and_frozen(direct: Direct, copies: Any) -> None:
    connection = direct.connection
    if copies == "batches":
        connection = direct.loaded("batches", How(connections=4, copies=copies))
        assert contents(connection) == direct.contents
    for table in TABLES:
        size, visible, frozen = pages(connection, table)
        # Streams of one table leave pages that they took and did not need.
        spare = 0 if copies == "tables" else 0.05 * size + 128
        assert size - spare <= visible == frozen <= size, table


@pytest.mark.parametrize(
    ("name", "partitions", "order"),
    [
        pytest.param("hashed", {"by": "hash", "count": 3}, "warehouse", marks=pytest.mark.long),
        ("ranged", {"by": "range", "count": 2}, "arrival"),
    ],
)
@pytest.mark.long
def test_partitions_hold_the_same_rows(
    direct: Direct, name: str, partitions: dict[str, Any], order: str
) -> None:
    connection = direct.loaded(name, partitions=partitions, order=order)

    assert contents(connection) == direct.contents
    require(check(connection, describe(SPEC).conditions))
    counts = run(
        connection,
        "SELECT inhparent::regclass::text, count(*) FROM pg_inherits JOIN pg_class c"
        " ON c.oid = inhrelid WHERE c.relkind = 'r' GROUP BY 1",
    )
    assert dict(counts) == {t: partitions["count"] for t in TABLES if t != "item"}
    invalid = run(connection, "SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid")
    assert invalid == []
    remembered = dict(run(connection, "SELECT key, value FROM pgdyno_load"))
    assert (
        remembered["partitions"] == f'{{"by":"{partitions["by"]}","count":{partitions["count"]}}}'
    )
    if partitions["by"] == "range":
        assert run(connection, "SELECT DISTINCT s_w_id FROM stock_p2") == [(2,)]


@pytest.mark.long
def test_orders_lie_as_they_arrived(direct: Direct) -> None:
    connection = direct.loaded("arrived", order="arrival", foreign_keys=False)

    assert contents(connection) == direct.contents
    first = run(connection, "SELECT o_id, o_w_id, o_d_id FROM orders ORDER BY ctid LIMIT 40")
    assert first == [(o, w, d) for o in (1, 2) for w in (1, 2) for d in range(1, 11)]
    lines = run(connection, "SELECT DISTINCT ol_o_id FROM (SELECT ol_o_id FROM order_line"
                            " ORDER BY ctid LIMIT 100) first")  # fmt: skip
    assert lines == [(1,)]


@pytest.mark.long
def test_warehouses_that_are_added_make_the_same_database(direct: Direct) -> None:
    connection = direct.loaded("added", warehouses=1)
    report = load(connection, SPEC, How(connections=2, intent="top_up"))

    assert (report.units_before, report.loaded_at_unix_s) == (1, LOADED_AT)
    assert contents(connection) == direct.contents
    assert keys(connection) == keys(direct.connection)
    assert dict(run(connection, "SELECT key, value FROM pgdyno_load"))["warehouses"] == "2"
    size, visible, frozen = pages(connection, "stock")
    assert visible == frozen >= 0.95 * size - 128

    run(connection, "UPDATE district SET d_next_o_id = 3002 WHERE d_w_id = 1 AND d_id = 1")
    with pytest.raises(DriveError, match="transactions changed database added"):
        load(connection, changed(SPEC, warehouses=3), How(intent="top_up"))


@pytest.mark.long
def test_a_few_more_branches_keep_the_indexes_up(direct: Direct) -> None:
    spec = tpcb(3)
    more = new_database(direct.server, "more")
    whole = new_database(direct.server, "whole")
    load(more, spec, TWO)
    report = load(more, tpcb(4), How(connections=2, intent="top_up"))
    load(whole, tpcb(4), TWO)

    assert (report.choices[1].name, report.choices[1].value) == ("indexes", "kept up")
    assert contents(more, PGBENCH) == contents(whole, PGBENCH)
    assert keys(more) == keys(whole)
