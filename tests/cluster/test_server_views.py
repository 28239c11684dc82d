"""What a report says of a real server's views: from the samplers' looks to the facts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import psycopg
import pytest

import pgdyno
from pgdyno.analysis.view_facts import FreezeUse, ServerViews
from pgdyno.analysis.views import server_views
from pgdyno.model.run import SnapshotRows, TrialRecord, TrialState
from pgdyno.sample.kept import snapshot_rows
from pgdyno.sample.sampler import Snapshot, Subject
from pgdyno.sample.samplers import server_buffers, server_io, server_replication, server_tables
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.data.miniature import a_result
from tests.waiting import until

pytestmark = pytest.mark.cluster
MODULES: tuple[Any, ...] = (server_buffers, server_io, server_replication, server_tables)
LOAD = "INSERT INTO seen SELECT i, i FROM generate_series(1, 200000) i"
SETTINGS = {"autovacuum": "off", "track_io_timing": "on", "shared_buffers": "1MB"}


@pytest.fixture(params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def server(request: pytest.FixtureRequest, session_home: object) -> Iterator[pgdyno.Server]:
    with pgdyno.Server(SETTINGS, bindir=request.param) as running:
        yield running


def snapshots_of(session: psycopg.Connection[Any]) -> list[Snapshot]:
    subject = Subject(session, ["postgres"], ours=True, telemetry="full")
    found = [module.sampler(subject) for module in MODULES]
    several = [one for some in found for one in (some if isinstance(some, list) else [some])]
    return [one for one in several if isinstance(one, Snapshot)]


def test_views_of_a_real_server_tell_what_a_load_did_to_it(server: pgdyno.Server) -> None:
    def connected() -> psycopg.Connection[Any]:
        return psycopg.connect(**server.connection.arguments(), autocommit=True)

    with connected() as owner, connected() as looks:
        owner.execute("CREATE TABLE seen (a int PRIMARY KEY, b int)")
        owner.execute("CREATE INDEX seen_b ON seen (b)")
        owner.execute("ALTER TABLE seen SET (autovacuum_freeze_max_age = 300000)")
        owner.execute("SELECT pg_create_physical_replication_slot('kept', true)")
        major = looks.info.server_version // 10_000
        snapshots = snapshots_of(looks)
        begin = read(snapshots, "begin")
        with connected() as loads:
            loads.execute(LOAD)
            loads.execute("SET enable_seqscan = off")
            for number in range(7):
                loads.execute("SELECT b FROM seen WHERE a = %s", (number,))
        # A session hands its counts in when it ends, which close() does not wait for.
        until(lambda: scans(read(snapshots, "end")) >= 7, "seven scans")
        end = read(snapshots, "end")

    views = facts_of([*begin, *end])
    io = {(one.process, one.object, one.context): one.stages[0] for one in views.io}
    relation = io.get(("client backend", "relation", "normal"))
    assert (relation is not None) == (major >= 16)
    if relation is not None:
        assert relation.per_s["extends"] > 0
        assert relation.per_s["writes"] > 0, "128 buffers do not hold it"
        assert relation.mean_s["writes"] > 0, "track_io_timing is on"
        assert relation.bytes_per_s["extends"] >= 8192 * relation.per_s["extends"]
    indexes = {one.index: one for one in views.indexes}
    assert indexes["seen_b"].unused
    assert not indexes["seen_pkey"].unused
    grown = indexes["seen_b"].stages[0]
    assert grown is not None
    assert grown.grown_bytes > 1e6
    assert views.buffers[0].stages[0] is not None
    assert sum(use.end for one in views.buffers for use in one.stages if use) == 128
    (slot,) = views.slots
    kept = slot.stages[0]
    assert (slot.slot, slot.type) == ("kept", "physical")
    assert kept is not None
    assert kept.grown_bytes is not None
    assert kept.grown_bytes > 1e7, "the load's WAL"
    assert views.standbys == ()
    assert {"slots", "standbys"} <= set(views.read), "that there is none was looked at"
    ages = {one.table: one.stages[0] for one in views.freeze}
    assert isinstance(ages["seen"], FreezeUse)
    assert (ages["seen"].age > 0, ages["seen"].max_age) == (True, 300_000)


def read(snapshots: list[Snapshot], at: Literal["begin", "end"]) -> list[SnapshotRows]:
    return [snapshot_rows(one, at, time.time_ns(), one.take()) for one in snapshots]


def scans(looks: list[SnapshotRows]) -> float:
    (indexes,) = (one for one in looks if one.name == "indexes")
    found = {row["relation"]: row["scans"] for row in indexes.rows}
    return float(found["seen_pkey"] or 0)


def facts_of(looks: list[SnapshotRows]) -> ServerViews:
    window = min(one.unix_ns for one in looks), max(one.unix_ns for one in looks)
    result = replace(a_result(), window_ns=window, deltas={})
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=result)
    return server_views(["one"], [record], {}, {1: looks}, {})
