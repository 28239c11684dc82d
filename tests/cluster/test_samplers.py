"""Samplers on real servers of two versions: what they name, they read, and it grows."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.catalog.waits import wait_of
from pgdyno.model.description import Description, PreparedSql
from pgdyno.model.plan import Telemetry
from pgdyno.model.wait import CPU, CPU_WAIT
from pgdyno.sample.activity import Activity
from pgdyno.sample.own_transactions import NAME as OWN_COMMITS
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Missing, Sampler, Snapshot, Subject, Tally
from pgdyno.sample.samplers import (
    samplers_of,
    server_aio,
    server_buffers,
    server_io,
    server_plans,
    server_progress,
    server_replication,
    server_resets,
    server_sessions,
    server_slru,
    server_statements,
    server_statistics,
    server_tables,
    server_transactions,
)
from pgdyno.sample.table_query import IN_TEMPLATE
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster
Session = psycopg.Connection[Any]
MODULES = (
    server_aio, server_buffers, server_io, server_plans, server_progress, server_replication,
    server_resets, server_sessions, server_slru, server_statements, server_statistics,
    server_tables, server_transactions,
)  # fmt: skip
HITS, ZEROED = "slru.transaction.hits", "slru.subtransaction.zeroed"
SUBTRANSACTIONS = """
DO $$ BEGIN
  FOR i IN 1..2100 LOOP  -- a page has room for 2048 numbers
    BEGIN INSERT INTO seen VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END;
  END LOOP;
END $$"""
LOOK, TAKE = "SELECT a FROM seen WHERE b = $1", "UPDATE seen SET b = b + 1 WHERE a = $1"
UNTYPED = "SELECT $1 IS NULL AS one"
STATEMENTS = (PreparedSql("look.1", LOOK), PreparedSql("take.1", TAKE),
              PreparedSql("take.2", UNTYPED), PreparedSql("begin", "BEGIN"))  # fmt: skip
WORKLOAD = Description("mix", 1, kinds=("look", "take"), statements=STATEMENTS)
SETTINGS = {"autovacuum": "off", "shared_preload_libraries": "pg_stat_statements",
            "track_io_timing": "on", "compute_query_id": "on"}  # fmt: skip
LACKING = {
    15: {
        "reads and writes under way", "I/O by process, object and context", "times of WAL I/O",
        "the server's count of completed checkpoints, and their pages of transaction states",
        "parallel workers that were wanted and launched", "checksum failures",
        "time of vacuums by table", "time of ANALYZE by table", "resets of single statements",
        "updates that put a row on another page", OWN_COMMITS,
    },
    18: {"times of WAL I/O", OWN_COMMITS},  # of one session alone these are told apart
}  # fmt: skip
NOBODY_TELLS = {  # without a standby and an archive
    "replication.sent_behind_bytes", "replication.flush_behind_bytes", "replication.write_lag_s",
    "replication.flush_lag_s", "replication.replay_lag_s", "replication.behind_bytes",
    "archive.behind_bytes",
}  # fmt: skip
NOT_FOR_GUESTS = {
    "sessions of others", "standbys", "oldest transaction", "progress of others", "buffer cache",
    "reads and writes under way", "statements of others",
}  # fmt: skip


@pytest.fixture(scope="module", params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def server(request: pytest.FixtureRequest, session_home: object) -> Iterator[pgdyno.Server]:
    """A server with a table, and with roles that may see everything and only themselves."""
    with pgdyno.Server(SETTINGS, bindir=request.param) as running:
        with running.connect() as session:
            session.execute(
                "CREATE TABLE seen AS SELECT i AS a, i AS b FROM generate_series(1, 2000) i"
            )
            session.execute("CREATE INDEX seen_b ON seen (b); ANALYZE seen")
            # In a database of ours samplers make these themselves: here roles come in any order.
            session.execute("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_buffercache")
            session.execute("CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher")
            session.execute("CREATE ROLE guest LOGIN")
        yield running


def connect(server: pgdyno.Server, **changed: str) -> Session:
    return psycopg.connect(**{**server.connection.arguments(), **changed}, autocommit=True)


@pytest.fixture
def watching(server: pgdyno.Server) -> Iterator[Callable[..., Subject]]:
    """Subjects with sessions of a role."""
    sessions: list[Session] = []

    def subject(user: str | None = None, ours: bool = False) -> Subject:
        named = {"user": user} if user else {}
        sessions.append(connect(server, **named))
        own = {session.info.backend_pid for session in sessions}
        return Subject(sessions[-1], ["postgres"], ours=ours, own_pids=own, telemetry="full",
                       described=WORKLOAD, wait_of=wait_of)  # fmt: skip

    yield subject
    for session in sessions:
        session.close()


def found(subject: Subject, *modules: Any) -> list[Any]:
    """What the modules find, one after the other."""
    several = [module.sampler(subject) for module in modules or MODULES]
    return [one for some in several for one in (some if isinstance(some, list) else [some]) if one]


def named(subject: Subject, module: Any, name: str) -> Any:
    return next(one for one in found(subject, module) if one.name == name)


def errors_of(subject: Subject, server: pgdyno.Server) -> list[str]:
    """What the last lines of the server's log hold against the samplers."""
    assert subject.session is not None
    pid = subject.session.info.backend_pid
    return [line for line in server.log().split(" / ") if f"[{pid}] ERROR" in line]


def reads_what_it_names(one: Sampler | Tally | Snapshot) -> None:
    if isinstance(one, Sampler):
        figures = one.take()
        assert set(figures) == {column.name for column in one.columns} - NOBODY_TELLS, one.name
        assert all(type(value) is float for value in figures.values()), one.name
    elif isinstance(one, Tally):
        assert all(len(key) == len(one.dimensions) for key in one.take()), one.name
    else:
        for row in one.take():
            assert set(row) == {column.name for column in one.columns}, one.name


@pytest.mark.parametrize("role", ["superuser", "watcher", "guest"])
def test_every_role_reads_what_it_may_and_is_told_the_rest(
    watching: Callable[..., Subject], role: str
) -> None:
    subject = watching(None if role == "superuser" else role, ours=role == "superuser")
    assert subject.session is not None
    several = found(subject)
    for one in several:
        if not isinstance(one, Missing):
            reads_what_it_names(one)

    missing = {one.name: one for one in several if isinstance(one, Missing)}
    expected = set(LACKING[subject.session.info.server_version // 10_000])
    if role != "superuser":
        expected |= {"waiting for a CPU by session"}
    if role == "guest":
        expected |= NOT_FOR_GUESTS
        assert missing["sessions of others"].remedy == "GRANT pg_monitor TO guest;"
    assert set(missing) == expected


def test_what_a_server_does_not_count_is_missing_and_never_zero(
    watching: Callable[..., Subject],
) -> None:
    subject = watching(ours=True)
    assert subject.session is not None
    subject.session.execute("SET track_counts = off; SET track_activities = off")
    several = found(subject)
    for one in several:
        if not isinstance(one, Missing):
            reads_what_it_names(one)

    missing = {one.name: one.reason for one in several if isinstance(one, Missing)}
    counts, activities = "track_counts is off", "track_activities is off"
    assert missing.items() >= {
        "tables and indexes": counts, "blocks, rows, temporary files and deadlocks": counts,
        "oldest transaction": activities, "progress of commands": activities,
        "states and statements of sessions": activities,
        "times of sessions by their state": activities,
    }.items()  # fmt: skip
    columns = {c.name for one in several if isinstance(one, Sampler) for c in one.columns}
    assert {"database.commits", "database.session_s", "transactions.oldest_xmin_age"} <= columns
    assert not columns & {"database.deadlocks", "transactions.oldest_s", "database.active_s"}


def test_wal_that_a_slot_does_not_keep_yet_is_not_known(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    slots = named(watching("guest"), server_replication, "replication")
    without = slots.take()
    with connect(server) as session:
        session.execute("SELECT pg_create_physical_replication_slot('unused')")
        try:
            unused = slots.take()
            session.execute("SELECT pg_create_physical_replication_slot('kept', true)")
            kept = slots.take()
        finally:
            session.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")

    assert without == dict.fromkeys(
        ("slots.count", "slots.inactive", "slots.retained_bytes", "slots.oldest_xmin_age"), 0
    )
    assert unused == {"slots.count": 1, "slots.inactive": 1, "slots.oldest_xmin_age": 0}
    assert kept.keys() - unused.keys() == {"slots.retained_bytes"}


def test_who_may_not_enter_the_schema_of_an_extension_is_told_the_grant(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    subject = watching("watcher")
    with connect(server) as session:
        session.execute("REVOKE USAGE ON SCHEMA public FROM public")
        try:
            told = {one.name: one for one in found(subject, server_statements, server_buffers)}
        finally:
            session.execute("GRANT USAGE ON SCHEMA public TO public")

    grant = f"GRANT USAGE ON SCHEMA public TO watcher; -- {IN_TEMPLATE}"
    assert {one.remedy for one in told.values()} == {grant}
    assert set(told) == {"statements", "buffer cache"}


def test_extensions_are_made_in_a_database_of_ours_and_asked_for_elsewhere(
    server: pgdyno.Server,
) -> None:
    with connect(server) as session:
        session.execute("CREATE DATABASE bare")
    modules = (server_statements, server_buffers)
    with connect(server, dbname="bare") as session:

        def lacking(*, ours: bool) -> dict[str, Any]:
            subject = Subject(session, ["bare"], ours=ours, telemetry="full", described=WORKLOAD,
                              wait_of=wait_of)  # fmt: skip
            later = LACKING[session.info.server_version // 10_000]  # versions tell
            return {one.name: one.remedy for one in found(subject, *modules)
                    if isinstance(one, Missing) and one.name not in later}  # fmt: skip

        assert lacking(ours=False) == {
            "statements": f"CREATE EXTENSION pg_stat_statements; -- {IN_TEMPLATE}",
            "buffer cache": f"CREATE EXTENSION pg_buffercache; -- {IN_TEMPLATE}",
        }
        assert lacking(ours=True) == {}


@pytest.mark.parametrize("bindir", [None, DEBIAN_BINDIR], ids=["18", "15"])
def test_lookups_of_transaction_states_are_counted(bindir: str | None, home_env: object) -> None:
    with pgdyno.Server({"autovacuum": "off"}, bindir=bindir) as server, server.connect() as session:
        (one,) = found(Subject(session=session), server_slru)
        before = one.take()
        assert set(before) == {column.name for column in one.columns}
        assert {HITS, ZEROED} <= set(before)
        session.execute("CREATE TABLE seen AS SELECT 1 AS a")
        with server.connect() as other:
            for _ in range(20):
                other.execute("INSERT INTO seen VALUES (2)")
            other.execute("SELECT count(*) FROM seen").fetchone()
            other.execute(SUBTRANSACTIONS)

        # A session hands its counts in when it ends, which close() does not wait for.
        until(lambda: one.take()[HITS] > before[HITS], "the hits of a session that ended")
        assert one.take()[ZEROED] > before[ZEROED]


def test_a_queue_for_a_row_leads_to_who_holds_it(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    sessions, locks, *_ = found(watching("watcher"), server_sessions)

    def waits_in_vain(session: Session) -> None:
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute(TAKE.replace("$1", "%s").encode(), (1,), prepare=True)

    with connect(server) as holder, connect(server) as second, connect(server) as third:
        blocker = f"client {holder.info.backend_pid}"
        holder.execute("BEGIN")
        holder.execute(b"UPDATE seen SET b = b + 1 WHERE a = 1")
        threads = [
            threading.Thread(target=waits_in_vain, args=(waiter,)) for waiter in (second, third)
        ]
        for thread in threads:
            thread.start()

        def waiting() -> list[dict[str, str]]:
            keys = [dict(zip(sessions.dimensions, key, strict=True)) for key in sessions.take()]
            return [key for key in keys if key["wait_class"] == "row"]

        until(lambda: len(waiting()) == 2, "two sessions that wait for a row")
        queue = [dict(zip(locks.dimensions, key, strict=True)) for key in locks.take()]
        seen = waiting()
        for waiter in (second, third):
            waiter.cancel_safe()
        for thread in threads:
            thread.join()
        holder.execute("ROLLBACK")

    assert {key["blocker"] for key in seen} == {blocker}
    assert {key["kind"] for key in seen} == {"take"}
    assert {key["statement"] for key in seen} == {"take.1"}
    assert {key["relation"] for key in queue} == {"seen"}
    assert {key["statement"] for key in queue} == {"take.1"}, "of who waits"
    (head,) = (key for key in queue if key["blocker"] == blocker)
    assert (head["lock"], head["blocker_state"]) == ("transactionid", "idle in transaction")
    until(lambda: not waiting() and not locks.take(), "the end of the queue")


def test_two_sessions_on_one_cpu_wait_for_it_half_of_the_time(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    sessions = found(watching(ours=True), server_sessions)[0]
    cpu = min(os.sched_getaffinity(0))
    met: Counter[str] = Counter()

    def burn(session: Session) -> None:
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute("DO $$ BEGIN LOOP NULL; END LOOP; END $$")  # and no file

    def enough() -> bool:
        keys = [dict(zip(sessions.dimensions, key, strict=True)) for key in sessions.take()]
        burning = [k["wait_class"] for k in keys if k["state"] == "active" and not k["wait_event"]]
        met.update(burning)
        return met.total() >= 100

    with connect(server) as one, connect(server) as two:
        threads = [threading.Thread(target=burn, args=(session,)) for session in (one, two)]
        for session, thread in zip((one, two), threads, strict=True):
            os.sched_setaffinity(session.info.backend_pid, {cpu})
            thread.start()
        until(enough, "a hundred samples of sessions that want a CPU")
        for session in (one, two):
            session.cancel_safe()
        for thread in threads:
            thread.join()

    # Others may keep both from it as well; nobody can give two more than the whole CPU.
    assert set(met) == {CPU, CPU_WAIT}
    assert met[CPU_WAIT] >= 40


def test_every_wait_event_of_the_server_is_in_the_catalogue(
    watching: Callable[..., Subject],
) -> None:
    session = watching().session
    assert session is not None
    if session.info.server_version < 170_000:
        pytest.skip("the server does not list its wait events before 17")
    events = session.execute("SELECT type, name FROM pg_wait_events").fetchall()
    assert len(events) > 200
    assert [event for event in events if not wait_of(*event).is_listed] == []


def test_a_plan_that_changed_has_another_shape(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    plans = named(watching(ours=True), server_plans, "plans")
    before = {row["statement"]: row for row in plans.take()}
    with connect(server) as other:
        other.execute("DROP INDEX seen_b")
        after = {row["statement"]: row for row in plans.take()}
        other.execute("CREATE INDEX seen_b ON seen (b)")

    assert set(before) == {"look.1", "take.1", "take.2"}
    assert "Index" in before["look.1"]["shape"]
    assert after["look.1"]["shape"] == "Seq Scan seen"
    assert after["take.1"]["shape"] == before["take.1"]["shape"]
    assert "could not determine" in before["take.2"]["error"]
    assert {row["statement"]: row for row in plans.take()}["look.1"] == before["look.1"]


def test_who_waits_for_a_locked_table_is_not_joined_and_nothing_is_logged(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    subject = watching(ours=True)
    plans = named(subject, server_plans, "plans")
    tables = named(subject, server_tables, "tables")
    sessions = named(subject, server_sessions, "sessions")
    sessions.take()
    with connect(server) as other:
        other.execute("BEGIN; LOCK TABLE seen")
        locked = {row["statement"]: row["error"] for row in plans.take()}
        with pytest.raises(psycopg.errors.LockNotAvailable):
            tables.take()
        other.execute("ROLLBACK")
    after = {row["statement"]: row["error"] for row in plans.take()}

    assert set(locked.values()) == {"canceling statement due to lock timeout"}
    assert after["look.1"] == after["take.1"] == ""
    assert [row for row in tables.take() if row["relation"] == "seen"]
    sessions.take()  # what it had prepared is still there
    assert errors_of(subject, server) == []


@pytest.mark.parametrize("may_prepare", [True, False])
def test_queries_are_prepared_where_they_may_be_and_tell_the_same(
    watching: Callable[..., Subject], may_prepare: bool
) -> None:
    session = watching().session
    assert session is not None
    if not may_prepare:
        session.prepare_threshold = None  # as behind a pooler that passes none on
    query = "SELECT name, %(one)s::bigint, NULL::text FROM pg_prepared_statements"
    asked = Prepared(session, query, {"one": 1})

    first, second = (asked.rows() for _ in range(2))
    assert first == second == ([(asked.name, 1, None)] if may_prepare else [])
    with pytest.raises(psycopg.errors.UndefinedTable):
        Prepared(session, "SELECT FROM nothing").rows()


def test_sessions_that_look_on_are_no_part_of_the_load(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    subject = watching(ours=True)
    with connect(server) as ours:
        for own in (False, True):
            others = {ours.info.backend_pid} if own else set()
            looking = replace(subject, own_pids={*subject.own_pids, *others})
            keys = named(looking, server_sessions, "sessions").take()
            assert len([key for key in keys if key[0] == "backend"]) == (0 if own else 1)


def test_who_idles_in_another_database_is_no_session_of_the_load(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    subject = watching()
    assert subject.session is not None
    there = [connect(server), connect(server, dbname="template1")]
    driven, elsewhere = (session.info.backend_pid for session in there)
    try:
        activity = Activity(subject.session, subject.databases, {}, wait_of, subject.own_pids)
        until(lambda: driven in activity.take(), "an idle session of the load is met")
        assert elsewhere not in activity.take()
        with there[1].transaction():
            there[1].execute("SELECT 1")
            assert elsewhere in activity.take()
    finally:
        for session in there:
            session.close()


@pytest.mark.parametrize("telemetry", ["default", "full"])
def test_all_samplers_together_fail_in_nothing_and_leave_no_error_in_the_log(
    server: pgdyno.Server, watching: Callable[..., Subject], telemetry: Telemetry
) -> None:
    subject = replace(watching(ours=True), telemetry=telemetry)
    recorder = Recorder(samplers_of(subject), telemetry)
    with recorder:
        recorder.window_begins()
        until(lambda: all(one.takes for one in recorder.telemetry().samplers), "a take of each")
        recorder.window_ends()

    told = recorder.telemetry()
    assert [(one.name, one.failure) for one in told.samplers if one.failure] == []
    assert {"sessions", "locks", "progress"} <= {one.name for one in told.samplers}
    assert ("buffers" in {one.name for one in told.samplers}) == (telemetry == "full")
    assert {(s.name, s.at) for s in recorder.snapshots()} >= {
        (name, at) for name in ("tables", "plans", "statements") for at in ("begin", "end")
    }
    assert errors_of(subject, server) == []


def test_statements_tables_and_buffers_tell_what_the_load_did(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    subject = watching(ours=True)
    statements, tables, buffers = (
        named(subject, module, name)
        for module, name in (
            (server_statements, "statements"),
            (server_tables, "tables"),
            (server_buffers, "buffers"),
        )
    )

    def read() -> tuple[float, float]:
        calls = sum(row["calls"] for row in statements.take() if row["statement"] == "take.1")
        (seen,) = (row for row in tables.take() if row["relation"] == "seen")
        assert seen["bytes"] > 0
        return calls, seen["updated"]

    before = read()
    with connect(server) as other:
        for _ in range(7):
            other.execute(TAKE.replace("$1", "%s").encode(), (2,), prepare=True)
    # A session hands its counts in when it ends, which close() does not wait for.
    until(lambda: read() == (before[0] + 7, before[1] + 7), "seven updates")
    assert {"seen"} <= {row["relation"] for row in buffers.take() if row["kind"] == "table"}
