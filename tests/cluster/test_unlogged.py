"""Loaded tables made unlogged on real servers, and what a crash makes of them."""

from __future__ import annotations

import pytest

from pgdyno.loader.consistency import check
from pgdyno.loader.copy import How, load
from pgdyno.loader.unlogged import emptied, make_unlogged
from pgdyno.model.workload import Partitions
from pgdyno.session import own_session
from pgdyno.workload.describe import describe
from tests.cluster.conftest import VERSIONS, cluster_apart
from tests.data.workloads import tpcc

pytestmark = [pytest.mark.cluster, pytest.mark.wide]

SHAPES = {
    "foreign keys": tpcc(2, foreign_keys=True),
    "partitions": tpcc(2, partitions=Partitions("range", 2)),
}
_KINDS = """
SELECT relname::text, relpersistence::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@pytest.mark.parametrize("server", VERSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_crash_empties_what_was_loaded_and_nothing_else(shape: str, server: str) -> None:
    workload = SHAPES[shape]
    described = describe(workload)
    with cluster_apart(server, "socket") as cluster:
        at = cluster.connection()
        load(at, workload, How(connections=2))
        make_unlogged(at, described.tables)

        with own_session(at) as session:
            kinds = dict(session.execute(_KINDS).fetchall())
        logged = {name for name, kind in kinds.items() if kind == "p"}
        assert len(kinds) > len(described.tables)
        assert logged == {"pgdyno_load", "pgdyno_load_made"}  # they remember the load
        assert emptied(at, described.tables) == ()
        assert all(one.ok for one in check(at, described.conditions))

        cluster.stop(clean=True)
        cluster.start([])
        assert emptied(cluster.connection(), described.tables) == ()

        cluster.stop(clean=False)
        cluster.start([], recovers=True)
        gone = set(emptied(cluster.connection(), described.tables))
        assert gone == {table.name for table in described.tables}
