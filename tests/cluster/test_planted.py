"""Ten situations, each planted in the window of a run: its report shows it at the right second."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.cluster.planted import CGROUPS, Server, control_group, seen
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.wide]
PLANTED_S = 2.5  # long enough for whole seconds
MAY_LIMIT = os.geteuid() == 0 and (CGROUPS / "blkio").is_dir()
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
LIMITS = pytest.mark.skipif(not MAY_LIMIT, reason="control groups of version 1 are root's to make")


def plan(
    settings: dict[str, Any] | None = None,
    *,
    window_s: float = 9.0,
    workload: dict[str, Any] | None = None,
) -> dict[str, Any]:
    tpcc = {"kind": "tpcc", "warehouses": 2, "connections": 4, "home": "random"}
    return {
        "name": "planted",
        "question": "Is it seen?",
        "workload": workload or tpcc,
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": window_s, "lowest_rung": "D2"},
        "stage": [{"name": "one", "why": "What is planted in.", "settings": settings or {}}],
    }


def test_a_queue_for_a_lock(folder: Path, home_env: Path) -> None:
    def plant(server: Server) -> None:
        with server.session() as other, server.session() as session, session.transaction():
            session.execute("LOCK TABLE warehouse")
            until(lambda: other.execute(WAITING).fetchone() == (4,), "all four wait")
            time.sleep(PLANTED_S)

    found = seen(plan(), folder, home_env, plant)

    assert max(found.active("lock")) > 3, "all four wait"
    (sessions,) = found.facts.sessions
    longest = next(one for one in sessions.blocking if one.relation == "warehouse")
    assert longest.blocker_state == "idle in transaction", "who holds it, and"
    assert longest.blocker_kind == "", "that it is none of ours"
    assert sessions.deepest is not None
    assert found.start_s - 1 < sessions.deepest.second < found.end_s + 1
    assert any("AccessExclusiveLock" in one.text or "relation" in one.text
               for one in found.marks("lock_wait"))  # fmt: skip


EAGER = {
    "autovacuum_naptime": "1s", "autovacuum_vacuum_threshold": 200,
    "autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_insert_threshold": -1,
}  # fmt: skip
VACUUMED = "SELECT last_autovacuum FROM pg_stat_user_tables WHERE relname = 'district'"


def a_vacuum(session: psycopg.Connection[Any]) -> float:
    """The next one of `district`: when it ended, in seconds since the epoch."""

    def told() -> Any:
        return (session.execute(VACUUMED).fetchone() or (None,))[0]

    before = told()
    until(lambda: told() != before, "a vacuum")
    return float(told().timestamp())


@pytest.mark.long
def test_a_transaction_that_holds_vacuum_back(folder: Path, home_env: Path) -> None:
    """Vacuums come while it is open, and what died since it began stays."""
    begun_s, vacuumed_s = list[float](), list[float]()

    def plant(server: Server) -> None:
        with server.session() as other, server.session() as session, session.transaction():
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            session.execute("SELECT count(*) FROM district")
            begun_s[:] = [time.time()]
            time.sleep(PLANTED_S)
            vacuumed_s[:] = [a_vacuum(other), a_vacuum(other)]

    found = seen(plan(EAGER, window_s=15.0), folder, home_env, plant)

    line = found.line("oldest transaction")
    at = max(zip(line.values, line.second, strict=True))
    assert at[0] > PLANTED_S
    begun = at[1] - at[0]
    assert found.start_s - 1 < begun < found.second(begun_s[0]) + 1, "it grows from when it began"
    held_s = found.second(vacuumed_s[1])
    marks = [one for one in found.timeline.marks if one.kind == "autovacuum"]
    (vacuum,) = [one for one in marks
                 if "district" in one.text and abs(one.end_s - held_s) < 0.75]  # fmt: skip
    assert "not removable, as a transaction may still see them" in vacuum.text


@pytest.mark.long
def test_autovacuum_on_a_hot_table(folder: Path, home_env: Path) -> None:
    last_s: list[float] = []

    def plant(server: Server) -> None:
        with server.session() as session:
            last_s[:] = [a_vacuum(session)]

    found = seen(plan(EAGER, window_s=15.0), folder, home_env, plant)

    # Its line comes after its statistic, so it may be later than what was planted.
    marks = [one for one in found.timeline.marks if one.kind == "autovacuum"]
    ended = [one.end_s for one in marks if "district" in one.text]
    ended_s = found.second(last_s[0])
    assert any(abs(one - ended_s) < 1.5 for one in ended), (ended, ended_s)


@pytest.mark.long
def test_temporary_files(folder: Path, home_env: Path) -> None:
    def plant(server: Server) -> None:
        with server.session() as session:
            session.execute("SET work_mem = '64kB'")
            session.execute("SELECT count(*) FROM (SELECT FROM order_line ORDER BY ol_dist_info) s")

    found = seen(plan(), folder, home_env, plant)

    assert found.marks("temporary_file")
    assert max(found.during("temporary files")) > 1e6
    assert max(found.before("temporary files")) == 0


@pytest.mark.long
def test_a_storm_of_checkpoints(folder: Path, home_env: Path) -> None:
    def plant(server: Server) -> None:
        with server.session() as session:
            for _ in range(3):
                session.execute("CHECKPOINT")
                time.sleep(PLANTED_S / 3)

    found = seen(plan(), folder, home_env, plant)

    inside = [
        one
        for one in found.timeline.checkpoints
        if found.start_s - 0.5 <= one.start_s <= found.end_s
    ]
    assert len(inside) == 3
    assert max(found.during("buffers written by checkpoints")) > 0


@LIMITS
@pytest.mark.long
def test_a_device_that_is_held_back(folder: Path, home_env: Path) -> None:
    device = os.stat(home_env).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"

    def plant(server: Server) -> None:
        slow = {"blkio.throttle.write_iops_device": f"{number} 10"}
        with control_group("blkio", server.pids(), slow):
            time.sleep(PLANTED_S)

    found = seen(plan(), folder, home_env, plant)

    waits = [sum(each) for each in zip(*map(found.active, ("wal", "io", "lock")), strict=True)]
    assert max(waits) > 3, "all four wait"
    assert max(found.active("wal")) > 0.9, "for a flush, or for rows of one who does"


@pytest.mark.long
@LIMITS
def test_cpus_that_are_held_back(folder: Path, home_env: Path) -> None:
    def plant(server: Server) -> None:
        # So little that it is held back for most of the time however little others leave it.
        little = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "3000"}
        with control_group("cpu", server.pids(), little):
            time.sleep(PLANTED_S)

    found = seen(plan(), folder, home_env, plant)

    assert max(found.during("CPUs on which the control group holds the server back")) > 0.5
    assert max(found.before("CPUs on which the control group holds the server back")) == 0


@pytest.mark.long
@LIMITS
def test_memory_that_is_too_little(folder: Path, home_env: Path) -> None:
    pressure: list[float] = []

    def plant(server: Server) -> None:
        pressure[:] = [of_the_last_10_s()]
        with server.session() as session:
            pids = [session.info.backend_pid]
            with control_group("memory", pids, {"memory.limit_in_bytes": str(24 << 20)}):
                session.execute("CREATE TABLE big AS SELECT repeat('x', 900) FROM"
                                " generate_series(1, 200000)")  # fmt: skip

    found = seen(plan({"max_wal_size": "4GB"}, window_s=20.0), folder, home_env, plant)

    assert max(found.during("a task waits for memory")) > 0.01
    if not pressure[0]:  # it is the whole machine's: others may wait for memory as well
        assert max(found.before("a task waits for memory"), default=0) < 0.01


def of_the_last_10_s() -> float:
    """How much of them somebody on this machine waited for memory, in per cent."""
    some = Path("/proc/pressure/memory").read_text().splitlines()[0]
    return float(dict(one.split("=") for one in some.split()[1:])["avg10"])


@pytest.mark.long
def test_a_slot_that_keeps_wal(folder: Path, home_env: Path) -> None:
    def plant(server: Server) -> None:
        with server.session() as session:
            session.execute("SELECT pg_create_physical_replication_slot('left', true)")
        time.sleep(PLANTED_S)

    found = seen(plan(), folder, home_env, plant)

    line = found.line("WAL kept by replication slots")
    kept = [second for second, value in zip(line.second, line.values, strict=True) if value > 0]
    assert found.start_s - 1 < kept[0] < found.end_s + 1
    assert max(line.values) > 100_000


@pytest.mark.long
def test_a_plan_that_flips_after_analyze(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "setup.sql").write_text(
        "CREATE TABLE flips AS SELECT at, at AS odd FROM generate_series(1, 20000) AS at;"
        "ALTER TABLE flips SET (autovacuum_enabled = off);"
        "CREATE INDEX flips_odd ON flips (odd); ANALYZE flips;"
    )
    (folder / "count.sql").write_text(
        "\\set odd random(1, 20000)\nSELECT count(*) FROM flips WHERE odd = :odd;\n"
    )
    workload: dict[str, Any] = {
        "kind": "script", "file": ["count.sql"], "setup": "setup.sql",
        "connections": 2,
    }  # fmt: skip

    last: list[Any] = []

    def plant(server: Server) -> None:
        with server.session() as session:
            session.execute("UPDATE flips SET odd = 1")
            session.execute("ANALYZE flips")
            asked = "SELECT last_analyze FROM pg_stat_user_tables WHERE relname = 'flips'"
            last[:] = session.execute(asked).fetchone() or ()

    found = seen(plan(workload=workload), folder, home_env, plant)

    assert found.facts.plans is not None
    (change,) = found.facts.plans.changes
    assert "Index" in change.before or "Bitmap" in change.before
    assert "Seq Scan flips" in change.after
    (mark,) = found.marks("analyze")
    assert mark.text == "flips"
    assert mark.end_s == pytest.approx(found.second(last[0].timestamp()), abs=1.5)
