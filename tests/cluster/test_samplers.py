"""Samplers on real servers of two versions: what they name, they read, and it grows."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.catalog.waits import CPU, CPU_WAIT, wait_of
from pgdyno.model.description import Description, NamedSql
from pgdyno.sample.activity import SAMPLER_NAME
from pgdyno.sample.sampler import Missing, Sampler, Snapshot, Subject, Tally
from pgdyno.sample.samplers import (
    server_aio,
    server_buffers,
    server_io,
    server_plans,
    server_progress,
    server_replication,
    server_sessions,
    server_slru,
    server_statements,
    server_statistics,
    server_tables,
    server_transactions,
)
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster
Session = psycopg.Connection[Any]
MODULES = (
    server_aio, server_buffers, server_io, server_plans, server_progress, server_replication,
    server_sessions, server_slru, server_statements, server_statistics, server_tables,
    server_transactions,
)  # fmt: skip
HITS = "slru.transaction.hits"
LOOK, TAKE = "SELECT a FROM seen WHERE b = $1", "UPDATE seen SET b = b + 1 WHERE a = $1"
UNTYPED = "SELECT count(*) FROM unnest($1) AS one"
STATEMENTS = (NamedSql("look.1", LOOK), NamedSql("take.1", TAKE), NamedSql("take.2", UNTYPED),
              NamedSql("begin", "BEGIN"))  # fmt: skip
WORKLOAD = Description("mix", 1, kinds=("look", "take"), statements=STATEMENTS)
SETTINGS = {"autovacuum": "off", "shared_preload_libraries": "pg_stat_statements",
            "track_io_timing": "on", "compute_query_id": "on"}  # fmt: skip


@pytest.fixture(scope="module", params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def server(request: pytest.FixtureRequest, session_home: object) -> Iterator[pgdyno.Server]:
    """A server with a table, and with roles that may see everything and only themselves."""
    with pgdyno.Server(SETTINGS, bindir=request.param) as running:
        with running.connect() as session:
            session.execute("CREATE TABLE seen AS SELECT i AS a, i AS b FROM generate_series(1, 2000) i")
            session.execute("CREATE INDEX seen_b ON seen (b); ANALYZE seen")
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
        sessions.append(connect(server, application_name=SAMPLER_NAME, **named))
        return Subject(sessions[-1], ["postgres"], ours=ours, described=WORKLOAD)

    yield subject
    for session in sessions:
        session.close()


def found(subject: Subject, *modules: Any) -> list[Any]:
    """What the modules find, one after the other."""
    several = [module.sampler(subject) for module in modules or MODULES]
    return [
        one
        for some in several
        for one in (() if some is None else some if isinstance(some, list) else [some])
    ]


def named(subject: Subject, module: Any, name: str) -> Any:
    return next(one for one in found(subject, module) if one.name == name)


def reads_what_it_names(one: Sampler | Tally | Snapshot) -> None:
    if isinstance(one, Sampler):
        row = one.take()
        assert set(row) == {column.name for column in one.columns}, one.name
        assert all(type(value) is float for value in row.values()), one.name
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
    old = {"aio", "pg_stat_io"} if subject.session.info.server_version < 180_000 else set()
    expected = {"times of WAL I/O"} - old if not old else old
    if role != "superuser":
        expected |= {"cpu_wait", "statements", "buffer cache"} & {*missing, "cpu_wait"}
    if role == "guest":
        expected |= {
            "sessions of others", "standbys", "oldest transaction", "progress of others", "aio",
        }  # fmt: skip
        assert missing["sessions of others"].remedy == "GRANT pg_monitor TO guest;"
    assert set(missing) == expected


@pytest.mark.parametrize("bindir", [None, DEBIAN_BINDIR], ids=["18", "15"])
def test_lookups_of_transaction_states_are_counted(bindir: str | None, home_env: object) -> None:
    with pgdyno.Server({"autovacuum": "off"}, bindir=bindir) as server, server.connect() as session:
        (one,) = found(Subject(session=session), server_slru)
        before = one.take()
        assert set(before) == {column.name for column in one.columns}
        assert {HITS, "slru.subtransaction.reads"} <= set(before)
        session.execute("CREATE TABLE seen AS SELECT 1 AS a")
        with server.connect() as other:
            for _ in range(20):
                other.execute("INSERT INTO seen VALUES (2)")
            other.execute("SELECT count(*) FROM seen").fetchone()

        # A session hands its counts in when it ends, which close() does not wait for.
        until(lambda: one.take()[HITS] > before[HITS], "the hits of a session that ended")


def test_a_queue_for_a_row_leads_to_who_holds_it(
    server: pgdyno.Server, watching: Callable[..., Subject]
) -> None:
    subject = watching("watcher")
    sessions = named(subject, server_sessions, "sessions")
    locks = next(one for one in found(subject, server_sessions) if one.name == "locks")
    one, two = found(subject, server_sessions)[:2]
    sessions, locks = one, two

    def waits_in_vain(session: Session) -> None:
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute(TAKE.replace("$1", "%s").encode(), (1,), prepare=True)

    with connect(server) as holder, connect(server) as second, connect(server) as third:
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

    blocker = f"client {holder.info.backend_pid}"
    assert {key["blocker"] for key in seen} == {blocker}
    assert {key["kind"] for key in seen} == {"take"}
    assert {key["statement"] for key in seen} == {"take.1"}
    assert {key["relation"] for key in queue} == {"seen"}
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
            session.execute("SELECT count(*) FROM generate_series(1, 1e12::bigint)")

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
