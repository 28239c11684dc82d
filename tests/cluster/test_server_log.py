"""What servers of two versions write into their logs of a vacuum, and what is read of it."""

from __future__ import annotations

import psycopg
import pytest

from pgdyno.model.run import Event
from pgdyno.sample.server_log import read_log
from tests.cluster.conftest import TARGETS, cluster_apart
from tests.waiting import until

pytestmark = pytest.mark.cluster
EAGER = ", ".join(
    f"autovacuum_{what} = 0"
    for what in ("vacuum_threshold", "vacuum_scale_factor", "analyze_threshold",
                 "analyze_scale_factor")
)  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_autovacuum_tells_its_pages_its_wal_and_its_time(name: str) -> None:
    with cluster_apart(name, "socket") as cluster:

        def seen() -> dict[str, Event]:
            events = read_log(cluster.log_lines()).events
            mine = [one for one in events if one.detail.table == "postgres.public.t"]
            return {one.kind: one for one in reversed(mine)}  # the first of each kind

        arguments = cluster.connection().to("postgres").arguments()
        with psycopg.connect(**arguments, autocommit=True) as session:
            session.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
            session.execute("SELECT pg_reload_conf()")
            session.execute(f"CREATE TABLE t (a int) WITH ({EAGER})".encode())
            session.execute("INSERT INTO t SELECT generate_series(1, 20000)")
            session.execute("UPDATE t SET a = a + 1")
        until(lambda: {"autovacuum", "autoanalyze"} <= seen().keys(), "a vacuum and an analyze")

        vacuum, analyze = seen()["autovacuum"], seen()["autoanalyze"]
    for one in (vacuum, analyze):
        assert one.detail.buffers_hit
        assert one.detail.buffers_read is not None
        assert one.detail.cpu_s is not None
        assert one.end_ns is not None
        assert one.end_ns >= one.start_ns
    assert vacuum.detail.buffers_dirtied
    assert vacuum.detail.wal_records
    assert vacuum.detail.wal_bytes
    # An analyze tells its WAL since 18.
    assert (analyze.detail.wal_records is not None) == (name == "embedded-18")
