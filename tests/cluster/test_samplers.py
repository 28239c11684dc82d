"""Samplers on real servers of two versions: what they name, they read, and it grows."""

from __future__ import annotations

import pytest

import pgdyno
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers.server_slru import sampler
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster
HITS = "slru.transaction.hits"


@pytest.mark.parametrize("bindir", [None, DEBIAN_BINDIR], ids=["18", "15"])
def test_lookups_of_transaction_states_are_counted(bindir: str | None, home_env: object) -> None:
    with pgdyno.Server({"autovacuum": "off"}, bindir=bindir) as server, server.connect() as session:
        found = sampler(Subject(session=session))
        assert found is not None
        before = found.take()
        assert set(before) == {column.name for column in found.columns}
        assert {HITS, "slru.subtransaction.reads"} <= set(before)
        session.execute("CREATE TABLE seen AS SELECT 1 AS a")
        with server.connect() as other:
            for _ in range(20):
                other.execute("INSERT INTO seen VALUES (2)")
            other.execute("SELECT count(*) FROM seen").fetchone()

        # A session hands its counts in when it ends, which close() does not wait for.
        until(lambda: found.take()[HITS] > before[HITS], "the hits of a session that ended")
