"""A standby of a cluster of ours: it streams, keeps its WAL by a slot, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.sample.sampler import Replica, Sampler, Subject
from pgdyno.sample.samplers import server_restartpoints
from pgdyno.sample.server_log import read_log
from pgdyno.session import own_session
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster
from pgdyno.target.standby import STANDBY, Standby
from tests.cluster.conftest import TARGETS, VERSIONS, cluster_apart
from tests.waiting import until

pytestmark = pytest.mark.cluster
SLOTS = "SELECT slot_name, active, restart_lsn IS NOT NULL FROM pg_replication_slots"


@pytest.fixture(params=VERSIONS)
def primary(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Binaries]]:
    binaries = find_binaries(TARGETS[request.param], postgres_user())
    with cluster_apart(request.param, "socket") as cluster:
        yield cluster, binaries


def rows(cluster: Cluster, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        return session.execute(query.encode()).fetchall()


def execute(cluster: Cluster, statement: str) -> None:
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        session.execute(statement.encode())


def restartpoints(primary: Cluster, standby: Standby) -> float:
    """How many it was asked for, as its sampler tells."""
    with (
        own_session(primary.connection()) as here,
        own_session(standby.cluster.connection()) as there,
    ):
        found = server_restartpoints.sampler(Subject(replica=Replica(there, here)))
        told = found if isinstance(found, list) else [found]
        (one,) = (each for each in told if isinstance(each, Sampler))
        row = one.take()
        assert set(row) == {column.name for column in one.columns}
        return row["restartpoints.requested"]


def test_it_streams_stops_and_catches_up(primary: tuple[Cluster, Binaries]) -> None:
    cluster, binaries = primary
    standby = Standby(cluster, binaries, postgres_user())
    try:
        standby.start([Setting("max_connections", "120", Origin(OriginKind.PLAN, "a test"))])
        assert rows(standby.cluster, "SELECT pg_is_in_recovery()") == [(True,)]
        assert rows(standby.cluster, "SHOW max_connections") == [("120",)]
        assert rows(cluster, SLOTS) == [(STANDBY, True, True)]

        standby.stop(clean=True)
        with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
            session.execute("CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
        lsn = str(rows(cluster, "SELECT pg_current_wal_flush_lsn()")[0][0])
        standby.start()
        standby.wait_replayed(lsn)
        assert rows(standby.cluster, "SELECT count(*) FROM t") == [(1000,)]
        before = restartpoints(cluster, standby)
        execute(cluster, "CHECKPOINT")
        standby.wait_replayed(str(rows(cluster, "SELECT pg_current_wal_flush_lsn()")[0][0]))
        execute(standby.cluster, "CHECKPOINT")
        until(lambda: restartpoints(cluster, standby) > before, "a restartpoint is counted")
        told = read_log(standby.cluster.log_lines()).events
        events = [one for one in told if one.kind.endswith("point")]
        assert {one.kind for one in events} == {"restartpoint"}
        assert events[-1].end_ns is not None
        assert events[-1].detail.total_s is not None

        with pytest.raises(TargetError, match="has not replayed FF/0 after 0 s"):
            standby.wait_replayed("FF/0", 0)

        with pytest.raises(TargetError, match="standby"):
            Standby(cluster, binaries, postgres_user())
        assert rows(cluster, SLOTS) == [(STANDBY, True, True)], "the first one's is as it was"
    finally:
        standby.close()
    assert rows(cluster, SLOTS) == []


@pytest.mark.wide
def test_a_copy_that_fails_leaves_neither_data_nor_slot(
    primary: tuple[Cluster, Binaries],
) -> None:
    cluster, binaries = primary
    execute(cluster, "ALTER SYSTEM SET max_wal_senders = 0")
    cluster.stop(clean=True)
    cluster.start([])
    with pytest.raises(TargetError, match=r"pg_basebackup ended with code 1.*max_wal_senders"):
        Standby(cluster, binaries, postgres_user())
    assert rows(cluster, SLOTS) == []
    assert not (cluster.data.parent / STANDBY).exists()
