"""Runs on a server that is not ours: killed at every statement, two at once, without their session.

Strangers' databases stay as they are, and the next run finds its way.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from pgdyno.model.connection import Connection
from pgdyno.model.errors import LostError, PlanError, TargetError
from pgdyno.model.settings import ServerFacts
from pgdyno.target.running_target import TRIAL, RunningTarget, ask_server
from pgdyno.target.server_owner import LIMIT, OWNER, Owner
from tests.attack.owning import IDENT, conninfo_of, killed, statements, work
from tests.attack.witness import database_facts, server_facts
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import run
from tests.tally import survived
from tests.waiting import until

pytestmark = pytest.mark.cluster
VERSIONS = ["embedded-18", pytest.param("debian-15", marks=pytest.mark.long)]
SEED = 11
FIXTURE = f"pgdyno_fixture_{IDENT}"
STRANGERS = {  # name, comment
    "shop": None,
    "pgdyno": "pgdyno trial",
    "pgdyno_trial_7": "pgdyno trial",
    "pgdyno_fixture_mine": "pgdyno fixture {}",
    "pgdyno_fixture_half": "pgdyno loading",
}


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Somebody else's server, whose databases have names and comments like ours."""
    with cluster_apart(request.param, "socket") as cluster:
        connection = cluster.connection()
        for name, comment in STRANGERS.items():
            run(connection, f"CREATE DATABASE {name}")
            if comment:
                run(connection, f"COMMENT ON DATABASE {name} IS '{comment}'")
        run(connection.to("shop"), "CREATE TABLE customer AS SELECT generate_series(1, 9) AS id")
        run(connection, "ALTER DATABASE shop SET work_mem = '5MB'")
        yield connection.to("shop")


@pytest.mark.parametrize("where", ["name", pytest.param("comment", marks=pytest.mark.wide)])
def test_what_strangers_wrote_in_no_encoding_is_not_read(where: str) -> None:
    """A session of a database in SQL_ASCII names others as it likes, in bytes that are no UTF-8."""
    with cluster_apart("embedded-18", "socket") as cluster:
        connection = cluster.connection()
        run(connection, "CREATE DATABASE raw ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0")
        odd = b"caf\xe9"
        name, comment = (odd, b"of others") if where == "name" else (b"cafe", b"pgdyno " + odd)
        raw = {**connection.to("raw").arguments(), "client_encoding": "SQL_ASCII"}
        with psycopg.connect(**raw, autocommit=True) as session:
            session.execute(b'CREATE DATABASE "' + name + b'"')
            session.execute(b'COMMENT ON DATABASE "' + name + b"\" IS '" + comment + b"'")
        owner = Owner(connection)
        try:
            assert owner.all_ours() == []
            owner.create("pgdyno_trial")
            assert [one.name for one in owner.all_ours()] == ["pgdyno_trial"]
            owner.drop("pgdyno_trial")
        finally:
            owner.release()
        with psycopg.connect(**raw) as session:
            there = "SELECT FROM pg_database WHERE datname = convert_from(%s, 'SQL_ASCII')::name"
            assert session.execute(there, (name,)).rowcount


def without_fixture(facts: dict[str, list[tuple[object, ...]]]) -> object:
    databases = [row for row in facts["databases"] if row[1] != FIXTURE]
    return {**facts, "databases": databases}


def is_left(connection: Connection) -> set[str]:
    rows = run(connection, f"SELECT datname FROM pg_database WHERE datconnlimit IN ({LIMIT}, -2)")
    return {name for (name,) in rows}


def survives(server: Connection, step: int, when: str) -> None:
    """A run killed there harms nobody, and the next one works and leaves only its fixture."""
    before = without_fixture(server_facts(server)), database_facts(server)
    killed(conninfo_of(server), step, when)  # type: ignore[arg-type]
    done = work(conninfo_of(server.to("postgres")))
    assert done.returncode == 0, (step, when, done.stderr)
    assert is_left(server) == {FIXTURE}, (step, when)
    assert (without_fixture(server_facts(server)), database_facts(server)) == before, (step, when)
    survived("kills of a plan on a running server at a statement")


@pytest.mark.wide
def test_a_run_killed_at_some_statements_harms_nobody(server: Connection) -> None:
    sent = statements(conninfo_of(server))
    creations = [at for at, text in enumerate(sent, 1) if text.startswith("CREATE DATABASE")]
    assert len(creations) == 4, "the lock's, the fixture's, two of the trial"
    chosen = random.Random(SEED + len(sent))
    survives(server, chosen.choice(creations), "after")
    survives(server, chosen.choice(creations), "during")
    survives(server, chosen.randrange(1, len(sent) + 1), "before")


@pytest.mark.long
@pytest.mark.parametrize("when", ["during", "after"])
def test_a_run_killed_at_any_statement_harms_nobody(server: Connection, when: str) -> None:
    """Before a statement the server is as it is after the one that comes before it."""
    for step in range(1, len(statements(conninfo_of(server))) + 1):
        survives(server, step, when)


def test_the_second_is_told_who_has_the_server(server: Connection) -> None:
    target = RunningTarget(conninfo_of(server))
    try:
        target.begin_fixture("other")
        before = server_facts(server)
        told = r"another pgdyno has the server .*: process \d+ on host \S+ since 20[\d: -]+ UTC \("
        with pytest.raises(TargetError, match=told):
            RunningTarget(conninfo_of(server.to("postgres")))
        assert server_facts(server) == before
    finally:
        target.close()
    assert OWNER not in is_left(server)


VACUUMED = """
CREATE TABLE slow WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0,
                        autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)
AS SELECT generate_series(1, 100000) AS id;
DELETE FROM slow;
SELECT pg_stat_force_next_flush();
"""
WORKERS = """
SELECT FROM pg_stat_activity WHERE datname = %s AND backend_type = 'autovacuum worker'
"""


def test_a_worker_of_autovacuum_is_not_the_next_one(server: Connection) -> None:
    """It was taken for one, and the lock's database stayed."""
    target = RunningTarget(conninfo_of(server))
    try:
        run(server, "ALTER SYSTEM SET autovacuum_naptime = 1")
        run(server, "SELECT pg_reload_conf()")
        with psycopg.connect(**server.to(OWNER).arguments(), autocommit=True) as session:
            session.execute(VACUUMED)
        with psycopg.connect(**server.arguments(), autocommit=True) as session:
            until(lambda: session.execute(WORKERS, (OWNER,)).rowcount, "autovacuum")
    finally:
        target.close()
        run(server, "ALTER SYSTEM RESET autovacuum_naptime")
        run(server, "SELECT pg_reload_conf()")
    assert OWNER not in is_left(server)


def test_asking_a_server_takes_nothing_and_disturbs_nobody(server: Connection) -> None:
    target = RunningTarget(conninfo_of(server))
    try:
        target.begin_fixture("other")
        target._owner.create(TRIAL)
        before = server_facts(server)
        asked = ask_server(conninfo_of(server)).facts
        # How many databases and sessions there are may have changed; nothing else has.
        assert without_counts(asked) == without_counts(target.facts)
        assert server_facts(server) == before
    finally:
        target.close()
        RunningTarget(conninfo_of(server)).close()
    assert is_left(server) <= {FIXTURE}


def without_counts(facts: ServerFacts) -> ServerFacts:
    assert facts.role is not None
    return replace(facts, about={}, role=replace(facts.role, sessions_left=None))


@pytest.mark.parametrize(
    "name", [OWNER, *(pytest.param(one, marks=pytest.mark.wide) for one in (TRIAL, FIXTURE))]
)
def test_a_stranger_of_that_name_is_never_dropped(server: Connection, name: str) -> None:
    run(server, f"DROP DATABASE IF EXISTS {FIXTURE}")
    run(server, f"CREATE DATABASE {name}")
    run(server, f"COMMENT ON DATABASE {name} IS 'pgdyno trial'")
    before = server_facts(server)
    try:
        done = work(conninfo_of(server))
        assert f"database {name} exists and is not marked as ours" in done.stderr
        after = server_facts(server)
        ours = {FIXTURE} - {name}
        kept = [row for row in after["databases"] if row[1] not in ours]
        assert {**after, "databases": kept} == before
    finally:
        run(server, f"DROP DATABASE {name}")
        RunningTarget(conninfo_of(server)).close()


def test_a_role_that_may_only_create_databases_is_enough(server: Connection) -> None:
    run(server, "CREATE ROLE worker LOGIN CREATEDB")
    run(server, f"DROP DATABASE IF EXISTS {FIXTURE}")
    try:
        worker = conninfo_of(server).replace(f"user={server.user}", "user=worker")
        done = work(worker)
        # Only an extension is beyond it, on versions that do not trust pg_prewarm.
        assert done.returncode == 0 or "pg_prewarm" in done.stderr, done.stderr
        assert is_left(server) <= {FIXTURE}
        run(server, "ALTER ROLE worker NOCREATEDB")
        with pytest.raises(TargetError, match=r"cannot be owned: .*permission denied to create"):
            RunningTarget(worker)
    finally:
        run(server, f"DROP DATABASE IF EXISTS {FIXTURE}")
        run(server, "DROP ROLE worker")


def test_who_sits_in_the_template_is_told_with_a_way_on(server: Connection) -> None:
    target = RunningTarget(conninfo_of(server))
    try:
        with (
            psycopg.connect(**server.to("template1").arguments()),
            pytest.raises(TargetError, match=r"template1.* is being accessed") as it,
        ):
            target._owner.create(TRIAL)
        assert "pg_stat_activity" in str(it.value.hint)
        assert "DETAIL" not in it.value.fact
    finally:
        target.close()


def test_a_run_whose_session_is_gone_drops_nothing(server: Connection) -> None:
    target = RunningTarget(conninfo_of(server))
    target._owner.create(TRIAL)
    target._trials.append(TRIAL)
    run(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{OWNER}'")
    for step in (target.stop, target.close, lambda: target.restore(IDENT)):
        with pytest.raises(LostError, match="ended this run's session"):
            step()
    assert TRIAL in is_left(server)
    RunningTarget(conninfo_of(server)).close()
    assert is_left(server) <= {FIXTURE}


def test_a_database_that_others_took_over_is_theirs(server: Connection) -> None:
    target = RunningTarget(conninfo_of(server))
    target._owner.create(TRIAL)
    target._trials.append(TRIAL)
    run(server, f"ALTER DATABASE {TRIAL} CONNECTION LIMIT 10")
    try:
        with pytest.raises(TargetError, match=f"database {TRIAL} exists and is not marked as ours"):
            target.stop()
    finally:
        target._trials.clear()
        target.close()
        run(server, f"DROP DATABASE {TRIAL}")


def test_a_pooler_owns_nothing(server: Connection) -> None:
    with pytest.raises(PlanError, match="a pooler stands between pgdyno and the server"):
        Owner(replace(server, pooled=True))


@pytest.mark.long
def test_many_who_want_a_server_have_it_one_after_the_other(server: Connection) -> None:
    holders, most, wins = 0, 0, 0
    guard = threading.Lock()
    refusals: list[str] = []
    doors = [server, server.to("postgres"), server.to("pgdyno")]

    def contend(number: int) -> None:
        nonlocal holders, most, wins
        for _ in range(6):
            try:
                owner = Owner(doors[number % len(doors)])
            except TargetError as error:
                refusals.append(error.fact)
                continue
            with guard:
                holders += 1
                wins += 1
                most = max(most, holders)
            owner.create(TRIAL)
            owner.drop(TRIAL)
            with guard:
                holders -= 1
            owner.release()

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert all("another pgdyno has the server" in fact for fact in refusals), refusals
    assert wins >= 6
    assert is_left(server) - {FIXTURE} in (set(), {OWNER})
