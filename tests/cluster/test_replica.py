"""Order-Status and Stock-Level that a standby answers, with its lag beside the numbers."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.api import Run
from pgdyno.catalog.waits import wait_of
from pgdyno.drive.driver import Wishes, drive
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.plan import Protocol
from pgdyno.model.run import TrialState
from pgdyno.model.settings import Rung
from pgdyno.model.workload import READS, Face
from pgdyno.sample.sampler import Replica, Sampler, Subject
from pgdyno.sample.samplers.server_replica import sampler
from pgdyno.session import own_session
from pgdyno.shell import postgres_user
from pgdyno.store.run_file import RunFile
from pgdyno.target.binaries import find_binaries
from pgdyno.target.database_use import in_use
from pgdyno.target.interface import Ready
from pgdyno.target.replica import caught_up
from pgdyno.target.running_target import RunningTarget
from pgdyno.target.server_owner import OWNER
from pgdyno.target.standby import Standby
from pgdyno.trial.servers import recorders_of_servers
from tests.cluster.conftest import TARGETS, cluster_apart
from tests.cluster.test_disturbed_samplers import goes_on
from tests.cluster.test_run import assert_nothing_left, pgdyno
from tests.data.workloads import tpcc
from tests.waiting import until

pytestmark = pytest.mark.cluster
PROTOCOL = Protocol(1, 0.0, 600.0, 20.0, False, 0.02, 0.95, Rung.D0)
STAGES = """
[protocol]
rounds = 1
warmup_s = 0.5
window_s = 3

[[stage]]
name = "alone"
why = "The server answers all."

[[stage]]
name = "with-a-replica"
why = "It does not read."
client = {{ replica_connections = 2 }}
"""
PLAN = (
    """
name = "replica"
question = "What do reads of a replica leave to the server?"

[target]
kind = "running"
conninfo = "{primary}"
replica = "{replica}"

[workload]
kind = "tpcc"
warehouses = 1
connections = 4
"""
    + STAGES
)
Pair = tuple[Connection, Connection]
BEHIND = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn < pg_current_wal_lsn()"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Somebody else's server with a standby."""
    user = postgres_user()
    with cluster_apart("embedded-18", "socket") as cluster:
        standby = Standby(cluster, find_binaries(TARGETS["embedded-18"], user), user)
        try:
            standby.start()
            yield (cluster.connection().to("postgres"),
                   standby.cluster.connection().to("postgres"))  # fmt: skip
        finally:
            standby.close()


def conninfo(connection: Connection) -> str:
    return psycopg.conninfo.make_conninfo(**connection.arguments())


def commits(connection: Connection, database: str) -> int:
    query = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        row = session.execute(query, (database,)).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("face", [pytest.param("statement", marks=pytest.mark.wide), "pipeline"])
def test_reads_go_to_the_replica_and_nothing_else_does(pair: Pair, face: Face) -> None:
    primary, replica = (one.to("reads") for one in pair)
    whole = tpcc(1)
    assert whole.tpcc is not None
    mix = {"new_order": 25.0, "payment": 20.0, "order_status": 30.0, "delivery": 5.0,
           "stock_level": 20.0}  # fmt: skip
    workload = replace(whole, tpcc=replace(whole.tpcc, mix=mix), connections=3, terminals=6,
                       requests_max=60, face=face, replica_connections=2)  # fmt: skip
    with psycopg.connect(**pair[0].arguments(), autocommit=True) as session:
        session.execute("DROP DATABASE IF EXISTS reads WITH (FORCE)")
        session.execute("CREATE DATABASE reads")
    load(primary, workload, How(connections=2))
    caught_up(replica, primary)
    before = commits(pair[0], "reads")

    driven = drive(primary, workload, PROTOCOL, None, wishes=Wishes(replica=replica))

    done = {kind.kind: kind.run.succeeded + kind.run.rolled_back for kind in driven.kinds}
    assert driven.error is None
    assert not driven.errors
    assert sum(done.values()) == 6 * 60
    reads = sum(done[kind] for kind in READS)
    assert reads > 100
    # What a server counts of a session comes to it within a second, or when it ends.
    until(lambda: commits(pair[1], "reads") >= reads, "the replica has counted its reads")
    written = sum(done.values()) - reads
    # Sessions that prepare their statements are counted, too.
    assert commits(pair[0], "reads") - before < written + reads / 2


def test_its_lag_is_seen(pair: Pair) -> None:
    primary, replica = pair
    with own_session(primary) as here, own_session(replica) as there:
        found = sampler(Subject(replica=Replica(there, here)))
        assert isinstance(found, Sampler)
        until(lambda: found.take()["replica.behind_bytes"] == 0, "it has caught up")
        there.execute("SELECT pg_wal_replay_pause()")
        try:
            here.execute("CREATE TABLE grown AS SELECT generate_series(1, 20000) AS i")
            until(lambda: found.take()["replica.lag_s"] > 0.3, "it lags")
            assert found.take()["replica.behind_bytes"] > 500_000
        finally:
            there.execute("SELECT pg_wal_replay_resume()")
            here.execute("DROP TABLE grown")
        until(lambda: found.take()["replica.behind_bytes"] == 0, "it has caught up again")
        assert found.take()["replica.lag_s"] < 5.0


def test_a_lost_session_on_the_replica_is_opened_anew_and_disturbs_no_other(pair: Pair) -> None:
    primary, replica = pair
    ready = replace(Ready(primary, (), None, None, 0.0, ""), replica=replica)
    reads = replace(tpcc(1), replica_connections=1)
    subject = Subject(databases=[primary.database], wait_of=wait_of)
    with ExitStack() as stack:
        found = recorders_of_servers(ready, reads, subject, set(), stack)
        (of_replica,), (of_primary,) = (
            [one for _, one in found if name in {cost.name for cost in one.telemetry().samplers}]
            for name in ("replica", "transactions")
        )
        goes_on(of_replica, "replica", "restartpoints")
        with psycopg.connect(**replica.arguments(), autocommit=True) as session:
            ended = session.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchone()
        assert ended is not None
        assert ended[0] > 0
        told = of_replica.telemetry
        until(lambda: any(one.gap_s for one in told().samplers), "the gap is over, and told")
        goes_on(of_replica, "replica", "restartpoints")
        goes_on(of_primary, "transactions", "sessions")
    assert [one.failure for one in of_replica.telemetry().samplers if one.failure] == []
    assert [one.gap_reason for one in of_primary.telemetry().samplers if one.gap_reason] == []


def test_its_lag_goes_on_while_its_session_is_lost(pair: Pair) -> None:
    """A new session would know of the primary since it was opened alone."""
    primary, replica = pair
    ready = replace(Ready(primary, (), None, None, 0.0, ""), replica=replica)
    reads = replace(tpcc(1), replica_connections=1)
    subject = Subject(databases=[primary.database], wait_of=wait_of)
    with ExitStack() as stack:
        here, there = (stack.enter_context(own_session(one)) for one in pair)
        until(lambda: here.execute(BEHIND).fetchone() == (0,), "it has caught up")
        found = recorders_of_servers(ready, reads, subject, set(), stack)
        (recorder,) = [
            one for _, one in found
            if "replica" in {cost.name for cost in one.telemetry().samplers}
        ]  # fmt: skip

        def told(name: str) -> list[float]:
            return [float(value) for one in recorder.series() if one.name == name
                    for value in one.values]  # fmt: skip

        goes_on(recorder, "replica")
        there.execute("SELECT pg_wal_replay_pause()")
        try:
            here.execute("CREATE TABLE more AS SELECT generate_series(1, 1000) AS i")
            until(lambda: max(told("replica.lag_s")) > 1, "it lags")
            there.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            until(lambda: any(one.gap_s for one in recorder.telemetry().samplers), "it was lost")
            goes_on(recorder, "replica")
            lags = told("replica.lag_s")
        finally:
            there.execute("SELECT pg_wal_replay_resume()")
            here.execute("DROP TABLE more")
        assert lags[-1] == max(lags) > 1, "it grew all the while"
        assert max(told("replica.lag_at_least_s"), default=0.0) < 1, "but for the begin"


def test_commits_that_are_answered_before_they_are_written_are_behind(pair: Pair) -> None:
    """They lie in WAL buffers, from which no standby has anything."""
    primary, replica = pair
    behind: list[float] = []
    with own_session(primary) as here, own_session(replica) as there:
        found = sampler(Subject(replica=Replica(there, here)))
        assert isinstance(found, Sampler)

        def in_buffers() -> int:
            until(lambda: found.take()["replica.behind_bytes"] == 0, "it has all until then")
            here.execute("INSERT INTO answered VALUES (1)")
            behind.append(found.take()["replica.behind_bytes"])
            row = here.execute(
                "SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()"
            ).fetchone()
            assert row is not None
            return int(row[0])

        here.execute("CREATE TABLE answered (i int)")
        here.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        here.execute("SELECT pg_reload_conf()")
        here.execute("SET synchronous_commit = off")
        try:
            until(in_buffers, "a commit is answered that is not written")
            # It was not when it was looked, either: nothing goes back into the buffers.
            assert behind[-1] > 0
        finally:
            here.execute("SET synchronous_commit = on")
            here.execute("ALTER SYSTEM RESET wal_writer_delay")
            here.execute("SELECT pg_reload_conf()")
            here.execute("DROP TABLE answered")
        until(lambda: found.take()["replica.behind_bytes"] == 0, "it has caught up")


@pytest.mark.wide
def test_a_plan_with_a_replica(folder: Path, pair: Pair) -> None:
    primary, replica = pair
    path, out = folder / "replica.toml", folder / "replica.sqlite"
    path.write_text(PLAN.format(primary=conninfo(primary), replica=conninfo(replica)))

    pgdyno("run", path, "--out", out)

    with RunFile.read(out) as run:
        assert [one.state for one in run.trials()] == [TrialState.FINISHED] * 2
        for trial in run.finished():
            names = set(run.series(trial.number))
            routed = trial.stage == "with-a-replica"
            assert ("replica.lag_s" in names) == ("replica.behind_bytes" in names) == routed
            assert trial.result is not None
            assert "replica: shared_buffers" in {one.name for one in trial.result.settings}
            assert all(one.ok for one in trial.result.conditions)
    facts = Run(out).facts
    (row,) = facts.replica
    assert (row.stage, row.connections, row.rounds) == ("with-a-replica", 2, 1)
    assert row.answered_per_s > 0
    assert 0.02 < row.share < 0.25
    assert row.samples >= 8
    assert row.lag_s is not None
    assert 0 <= row.lag_s.p50 <= row.lag_s.p99 <= row.lag_s.most
    assert facts.label == "TPC-C-like, not a TPC result; reads of a replica may be stale"
    (deviation,) = [one for one in facts.deviations if "stale" in one.what]
    assert deviation.stages == ("with-a-replica",)
    shown = pgdyno("report", out, "--format", "md", "--out", "-").stdout
    assert "## Reads of a replica" in shown
    assert "Reads may be stale" in shown
    assert "a replica answered a part of the load, whose sessions were not sampled" in shown


OURS = (
    """
name = "own-replica"
question = "What do reads of a replica leave to the server?"

[target]
replicas = 1
transport = "{transport}"

[workload]
kind = "tpcc"
warehouses = 1
connections = 4

[workload.mix]   # reads in every window, also on a machine that is busy
new_order = 25
payment = 20
order_status = 30
delivery = 5
stock_level = 20
"""
    + STAGES
)


@pytest.mark.long
@pytest.mark.parametrize("transport", ["socket", pytest.param("tcp", marks=pytest.mark.long)])
def test_a_private_cluster_has_a_replica_of_its_own(
    folder: Path, home_env: Path, transport: str
) -> None:
    path, out = folder / "own.toml", folder / "own.sqlite"
    path.write_text(OURS.format(transport=transport))
    shown = " ".join(pgdyno("run", path, "--dry-run").stdout.split())
    assert "with a streaming standby on the same machine, which is made for each trial" in shown
    assert "shared memory of the standby" in shown

    pgdyno("run", path, "--out", out)

    with RunFile.read(out) as run:
        trials = run.finished()
        assert [one.stage for one in trials] == ["alone", "with-a-replica"]
        for trial in trials:
            names = set(run.series(trial.number))
            routed = trial.stage == "with-a-replica"
            assert ("replica.lag_s" in names) == ("replica.behind_bytes" in names) == routed
            assert trial.result is not None
            assert any("ran on the machine of the server" in one for one in trial.result.notes)
            assert all(one.ok for one in trial.result.conditions)
    (row,) = Run(out).facts.replica
    assert (row.stage, row.connections, row.rounds) == ("with-a-replica", 2, 1)
    assert row.answered_per_s > 0
    assert row.lag_s is not None
    assert 0 <= row.lag_s.p50 <= row.lag_s.p99 <= row.lag_s.most
    page = pgdyno("report", out, "--format", "md", "--out", "-").stdout
    assert "## Reads of a replica" in page
    assert "The replica ran on the machine of the server" in page
    assert_nothing_left(home_env)
    assert not (home_env / "work" / "standby").exists()


KILLED = """
import os, signal, sys
import pgdyno
from pgdyno.model.progress import DriveProgress, TrialEnded
ended = []
def tell(event):
    if isinstance(event, TrialEnded):
        ended.append(event)
    if ended and isinstance(event, DriveProgress) and event.phase == "window":
        os.kill(os.getpid(), signal.SIGKILL)
pgdyno.run(pgdyno.load_plan(sys.argv[1]), out=sys.argv[2], on_event=tell)
"""


@pytest.mark.long
@pytest.mark.same_machine
def test_a_run_with_a_replica_of_its_own_is_resumed_after_it_was_killed(
    folder: Path, home_env: Path
) -> None:
    path, out = folder / "own.toml", folder / "own.sqlite"
    path.write_text(OURS.format(transport="socket"))
    words = [sys.executable, "-c", KILLED, str(path), str(out)]
    killed = subprocess.run(words, check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with RunFile.read(out) as run:
        assert [one.state for one in run.trials()] == [TrialState.FINISHED, TrialState.RUNNING]
    assert (home_env / "work" / "standby" / "standby.signal").exists(), "its data are left behind"

    pgdyno("resume", out)

    with RunFile.read(out) as run:
        trials = run.finished()
        assert [one.attempt for one in trials] == [2, 2], "a round is measured as a whole"
        names = [set(run.series(one.number)) for one in trials]
        assert all(one.ok for trial in trials if trial.result for one in trial.result.conditions)
    assert ["replica.lag_s" in one for one in names] == [
        one.stage == "with-a-replica" for one in trials
    ]
    (row,) = Run(out).facts.replica
    assert (row.stage, row.rounds) == ("with-a-replica", 1)
    assert row.answered_per_s > 0
    assert_nothing_left(home_env)
    assert not (home_env / "work" / "standby").exists()


def test_a_pooler_beside_a_replica_is_refused_before_anything_is_begun(
    folder: Path, home_env: Path
) -> None:
    path, out = folder / "beside.toml", folder / "beside.sqlite"
    text = OURS.format(transport="socket").replace("rounds = 1", 'rounds = 1\nlowest_rung = "D6"')
    path.write_text(f"{text}\npooler = {{ sessions = 2 }}\n")

    before = sorted(home_env.glob("fixtures/*"))
    said = " ".join(pgdyno("run", path, "--out", out, code=2).stderr.split())

    assert "stage with-a-replica: pooler = " in said
    assert "target.replicas" in said
    assert not out.exists()
    assert sorted(home_env.glob("fixtures/*")) == before, "nothing was loaded"


@pytest.mark.wide
def test_sessions_that_a_replica_has_not_are_refused_before_anything_is_loaded(
    folder: Path, pair: Pair
) -> None:
    path, out = folder / "few.toml", folder / "few.sqlite"
    with psycopg.connect(**pair[0].arguments(), autocommit=True) as session:
        session.execute("DROP ROLE IF EXISTS few")
        session.execute("CREATE ROLE few LOGIN CREATEDB CONNECTION LIMIT 10")
    caught_up(pair[1], pair[0])
    primary, replica = (conninfo(replace(one, user="few")) for one in pair)
    text = PLAN.format(primary=primary, replica=replica)
    text = text.replace("rounds = 1", "rounds = 1\nprewarm = false\ncheckpoint_before = false")
    path.write_text(text)
    shown = pgdyno("run", path, "--dry-run").stdout
    assert "Rights of role few on the replica" in shown
    assert "have 4 sessions at once" in shown

    path.write_text(text.replace("replica_connections = 2", "replica_connections = 20"))
    done = pgdyno("run", path, "--out", out, code=2)

    said = " ".join(done.stderr.split())
    assert "replica: role few: may not have 22 sessions at once, but 10" in said
    assert not out.exists()


def test_a_replica_is_of_one_run_or_of_benches(pair: Pair) -> None:
    primary, replica = map(conninfo, pair)
    target = RunningTarget(primary, replica=replica)
    try:
        owned = "a run of another pgdyno has the server of"
        with pytest.raises(TargetError, match=owned), in_use(pair[1], alone=False):
            pass
        with psycopg.connect(**pair[1].arguments(), autocommit=True) as session:
            ours = (
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
            )
            assert session.execute(ours, (OWNER,)).fetchall() == [(True,)]
        used = "another pgdyno uses database postgres of the replica"
        with pytest.raises(TargetError, match=used), in_use(pair[1], alone=False):
            target.apply([])
    finally:
        target.close()
    with in_use(pair[1], alone=False), pytest.raises(TargetError, match=used):
        RunningTarget(primary, replica=replica)

    RunningTarget(primary, replica=replica).close()


def test_what_the_replica_has_set_is_written_down(pair: Pair) -> None:
    target = RunningTarget(conninfo(pair[0]), replica=conninfo(pair[1]))
    try:
        before = target.configuration()
        assert before["replica: version"].startswith("PostgreSQL 18")
        assert before["replica: work_mem"] == before["work_mem"] == "4MB"
        set_there(pair[1], "SET work_mem = '9MB'")
        try:
            until(lambda: target.configuration()["replica: work_mem"] == "9MB", "it is set there")
            changed = {name: value for name, value in target.configuration().items()
                       if before.get(name) != value}  # fmt: skip
            assert changed == {"replica: work_mem": "9MB"}
        finally:
            set_there(pair[1], "RESET work_mem")
    finally:
        target.close()


def set_there(server: Connection, change: str) -> None:
    """Change the configuration of a server that runs."""
    with psycopg.connect(**server.arguments(), autocommit=True) as session:
        session.execute(f"ALTER SYSTEM {change}")
        session.execute("SELECT pg_reload_conf()")


@pytest.mark.wide
def test_what_is_no_replica_is_refused(folder: Path, pair: Pair) -> None:
    path = folder / "none.toml"
    with cluster_apart("embedded-18", "socket") as other:
        foreign = other.connection().to("postgres")
        for named, fact in ((pair[0], "is no standby: it is not in recovery"),
                            (foreign, "is no standby: it is not in recovery")):  # fmt: skip
            path.write_text(PLAN.format(primary=conninfo(pair[0]), replica=conninfo(named)))
            done = pgdyno("run", path, code=2)
            assert fact in " ".join(done.stderr.split())
        path.write_text(PLAN.format(primary=conninfo(foreign), replica=conninfo(pair[1])))
        done = pgdyno("run", path, code=2)
        assert "follows another server than" in " ".join(done.stderr.split())
