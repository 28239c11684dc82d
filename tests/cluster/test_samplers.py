"""Samplers on real servers of two versions: what they name, they read, and it grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.sample.process_roles import ROLES
from pgdyno.sample.sampler import Row, Sampler, Subject
from pgdyno.sample.samplers import processes
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


def postmaster_of(session: psycopg.Connection[Any]) -> int:
    row = session.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


def processes_of(session: psycopg.Connection[Any]) -> Callable[[], Row]:
    own = {session.info.backend_pid}
    found = processes.sampler(Subject(session, (), postmaster_of(session), own_pids=own))
    assert isinstance(found, list)
    (one,) = found  # nothing is missing
    assert isinstance(one, Sampler)
    return one.take


def counts(row: Row) -> dict[str, float]:
    return {role: row[f"process.{role}.count"] for role in ROLES}


@pytest.mark.parametrize(
    ("bindir", "io_workers"), [(None, 3), (DEBIAN_BINDIR, 0)], ids=["18", "15"]
)
def test_processes_are_known_by_role_and_keep_what_they_used(
    bindir: str | None, io_workers: int, home_env: object
) -> None:
    expected = dict.fromkeys(set(ROLES) - {"other"}, 0.0) | {
        "checkpointer": 1, "background_writer": 1, "wal_writer": 1, "io_worker": io_workers,
        "telemetry": 1,
    }  # fmt: skip
    with pgdyno.Server({"autovacuum": "off"}, bindir=bindir) as server, server.connect() as session:
        take = processes_of(session)
        # Titles are not there at once, and who asked whether it is ready may still be there.
        until(lambda: expected.items() <= counts(take()).items(), f"processes {expected}")
        first = take()
        others = counts(first)["other"]  # the postmaster, and what a version has
        assert others >= 1

        with server.connect() as busy:
            busy.execute("SELECT sum(n) FROM generate_series(1, 2000000) AS n").fetchone()
            during = take()
        assert counts(during) == expected | {"other": others, "backend": 1}
        assert during["process.backend.cpu_s"] > first["process.backend.cpu_s"]
        assert during["process.backend.cpu_s"] > during["process.checkpointer.cpu_s"]

        until(lambda: not take()["process.backend.count"], "the end of the session")
        after = take()
        assert all(after[name] >= during[name] for name in after if not name.endswith(".count"))
        parts = [f"process.{role}.cpu_s" for role in (*ROLES, "unseen")]
        grown = sum(after[part] - first[part] for part in parts)
        # Of what has ended the server's own clock tells ticks of 10 ms.
        assert grown == pytest.approx(after["server.cpu_s"] - first["server.cpu_s"], abs=0.05)
