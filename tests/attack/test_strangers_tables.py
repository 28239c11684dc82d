"""Strangers' tables, views, types and the like wherever a load could meet them, and loads that die.

Whatever a load is asked for, what it did not make has the same OIDs, definitions and rows after it.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import loaded_workload
from pgdyno.loader.copy import How, Intent, load
from pgdyno.loader.csv_files import load_csv, read_folder
from pgdyno.loader.export import export
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Partitions, Workload
from tests import children
from tests.attack.relay import Relay
from tests.attack.witness import database_facts, strangers_facts
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import (
    LOADED_AT,
    PGBENCH,
    contents,
    keys,
    left_alone,
    new_database,
    run,
)
from tests.data.workloads import changed, loading, tpcb, tpcc
from tests.tally import survived
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
VERSIONS = ["embedded-18", pytest.param("debian-15", marks=pytest.mark.long)]
SEED = 11
TPCB = tpcb(foreign_keys=True)
TPCC = tpcc()
INTENTS: tuple[Intent | None, ...] = (None, "drop_ours", "resume", "top_up")
ONE = How(connections=1)

IN_THE_WAY = {
    "a table": "CREATE TABLE pgbench_tellers AS SELECT generate_series(1, 9) AS id",
    "a partitioned table": "CREATE TABLE pgbench_tellers (id int) PARTITION BY LIST (id)",
    "a view": "CREATE VIEW pgbench_tellers AS SELECT 1 AS id",
    "a materialized view": "CREATE MATERIALIZED VIEW pgbench_tellers AS SELECT 1 AS id",
    "a sequence": "CREATE SEQUENCE pgbench_tellers",
    "a row type": "CREATE TYPE pgbench_tellers AS (id int)",
    "an enum": "CREATE TYPE pgbench_tellers AS ENUM ('cashier')",
    "a domain": "CREATE DOMAIN pgbench_tellers AS int",
    "an index": "CREATE TABLE mine (id int); CREATE INDEX pgbench_tellers_pkey ON mine (id)",
    "a table of an index's name": "CREATE TABLE pgbench_accounts_pkey (id int)",
    "a record": "CREATE TABLE pgdyno_load_made AS SELECT 1 AS id",
    "a record that names it": "CREATE TABLE pgbench_tellers (id int);"
    " CREATE TABLE pgdyno_load_made AS SELECT 'relation'::text AS kind, oid AS id,"
    " 'public'::name AS schema, relname AS name, 1 AS columns FROM pg_class"
    " WHERE relname = 'pgbench_tellers'",
    "a ledger": "CREATE TABLE pgdyno_load_progress (step text, detail text)",
    "a table pgdyno_load": "CREATE TABLE pgdyno_load (key text, value text);"
    " INSERT INTO pgdyno_load VALUES ('workload', 'pgbench')",
    "another schema's table": "CREATE SCHEMA other; CREATE TABLE other.pgbench_tellers (id int);"
    " DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, other',"
    " current_database()); END $$",
    "pgbench's own": "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int,"
    " filler char(84)); CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int,"
    " filler char(88))",
}
UPON_OURS = {
    "an index": "CREATE INDEX mine ON pgbench_accounts (bid)",
    "a column": "ALTER TABLE pgbench_branches ADD COLUMN mine int",
    "a column with a sequence": "ALTER TABLE pgbench_branches ADD COLUMN mine serial",
    "a check": "ALTER TABLE pgbench_branches ADD CONSTRAINT mine CHECK (bid > 0)",
    "a reference": "CREATE TABLE mine (bid int PRIMARY KEY); INSERT INTO mine VALUES (1);"
    " ALTER TABLE pgbench_branches ADD FOREIGN KEY (bid) REFERENCES mine",
    "a trigger": "CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RETURN NEW; END $$; CREATE TRIGGER mine BEFORE INSERT ON pgbench_tellers"
    " FOR EACH ROW EXECUTE FUNCTION mine()",
    "a rule": "CREATE RULE mine AS ON DELETE TO pgbench_tellers DO NOTHING",
    "a policy": "CREATE POLICY mine ON pgbench_tellers USING (tid > 0)",
    "statistics": "CREATE STATISTICS mine ON tid, bid FROM pgbench_tellers",
    "a publication": "CREATE PUBLICATION mine FOR TABLE pgbench_tellers",
    "a replaced table": "DROP TABLE pgbench_history;"
    " CREATE TABLE pgbench_history AS SELECT generate_series(1, 9) AS id",
    "a replaced index": "ALTER TABLE pgbench_tellers DROP CONSTRAINT pgbench_tellers_pkey CASCADE;"
    " CREATE TABLE mine (id int); CREATE INDEX pgbench_tellers_pkey ON mine (id)",
    "a table that others own": "CREATE ROLE {role}; ALTER TABLE pgbench_history OWNER TO {role}",
    "a view in place of a renamed table": "ALTER TABLE pgbench_history RENAME TO mine;"
    " CREATE VIEW pgbench_history AS SELECT * FROM mine",
    "no record": "DROP TABLE pgdyno_load_made",
    "a copied record": "CREATE TABLE copy (LIKE pgdyno_load_made); INSERT INTO copy"
    " SELECT * FROM pgdyno_load_made; DROP TABLE pgdyno_load_made;"
    " ALTER TABLE copy RENAME TO pgdyno_load_made",
}
LEANING = {  # on our tables: these may be filled, but not dropped
    "a view": "CREATE VIEW mine AS SELECT * FROM pgbench_tellers",
    "a child": "CREATE TABLE mine (more int) INHERITS (pgbench_history)",
    "a column of a table's type": "CREATE TABLE mine (teller pgbench_tellers)",
    "a function": "CREATE FUNCTION mine(pgbench_tellers) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "a foreign key": "CREATE TABLE mine (bid int REFERENCES pgbench_branches)",
}
BESIDE = (
    "CREATE SCHEMA apart; CREATE TABLE apart.pgbench_accounts AS SELECT generate_series(1, 9) AS a;"
    " CREATE VIEW apart.stock AS SELECT 1 AS id; CREATE TABLE apart.mine (id serial PRIMARY KEY);"
    " INSERT INTO apart.mine SELECT generate_series(1, 99); CREATE SEQUENCE apart.pgbench_branches;"
    " CREATE TYPE apart.pgbench_tellers AS ENUM (); CREATE TABLE mine AS SELECT 1 AS id"
)


def few(cases: Iterable[str], *every_day: str) -> list[Any]:
    """All cases: some of them every day, the others widely."""
    assert set(every_day) <= set(cases)
    return [pytest.param(one, marks=() if one in every_day else pytest.mark.wide) for one in cases]


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with cluster_apart(request.param, "socket") as cluster:
        for setting in ("autovacuum = off", "fsync = off"):
            run(cluster.connection(), f"ALTER SYSTEM SET {setting}")
        run(cluster.connection(), "SELECT pg_reload_conf()")
        yield cluster.connection()


@pytest.fixture(scope="module")
def whole(server: Connection) -> Connection:
    """A complete load, to be copied."""
    connection = new_database(server, "whole")
    load(connection, TPCB, ONE, loaded_at_unix_s=LOADED_AT)
    return connection


@pytest.fixture
def empty(server: Connection) -> Iterator[Connection]:
    yield new_database(server, "beside")
    run(server, "DROP DATABASE beside WITH (FORCE)")


@pytest.fixture
def copy(server: Connection, whole: Connection) -> Iterator[Connection]:
    """A copy of the load: OIDs stay what they are."""
    yield new_database(server, "copy", f"TEMPLATE {whole.database}")
    run(server, "DROP DATABASE copy WITH (FORCE)")


def refused(connection: Connection, intent: Intent | None, spec: Workload = TPCB) -> None:
    """Nothing is changed by it, nor advised that would destroy what is not ours."""
    before = database_facts(connection)
    with pytest.raises(DriveError) as caught:
        load(connection, spec, replace(ONE, intent=intent))
    assert "--drop-ours" not in str(caught.value.hint), (intent, caught.value.fact)
    assert database_facts(connection) == before, (intent, caught.value.fact)


@pytest.mark.parametrize(
    "what", few(IN_THE_WAY, "a table", "a view", "an index", "a record that names it")
)
def test_what_is_in_the_way_of_a_load_stays(empty: Connection, what: str) -> None:
    run(empty, IN_THE_WAY[what])
    for intent in INTENTS:
        refused(empty, intent)


@pytest.mark.parametrize(
    "what",
    few(UPON_OURS, "a column", "a trigger", "a replaced table", "a table that others own"),
)
def test_what_others_put_upon_our_tables_stays(copy: Connection, what: str) -> None:
    run(copy, UPON_OURS[what].format(role=f"owner_{run(copy, 'SHOW server_version_num')[0][0]}"))
    refused(copy, "drop_ours")
    refused(copy, "top_up", changed(TPCB, scale=2))
    if "role" in UPON_OURS[what]:
        run(copy, "ALTER TABLE pgbench_history OWNER TO CURRENT_USER")


@pytest.mark.parametrize("what", few(LEANING, "a view", "a foreign key"))
def test_what_leans_on_our_tables_stays(copy: Connection, what: str) -> None:
    run(copy, LEANING[what])
    before = database_facts(copy)
    with pytest.raises(DriveError, match="others lean on tables of the earlier load") as caught:
        load(copy, TPCB, replace(ONE, intent="drop_ours"))
    assert "CASCADE" not in str(caught.value.hint)
    assert database_facts(copy) == before


def test_a_users_table_survives_the_drop_of_another_schemas_load(copy: Connection) -> None:
    """As it was tried: a load that does not clash, and --drop-ours of one that would."""
    run(copy, "CREATE TABLE customer AS SELECT generate_series(1, 9) AS id")
    refused(copy, None, TPCC)
    before = database_facts(copy)
    with pytest.raises(DriveError, match=r"has table public.customer, which pgdyno did not make"):
        load(copy, TPCC, replace(ONE, intent="drop_ours"))
    assert database_facts(copy) == before


def test_an_older_versions_load_can_be_read_but_not_dropped(copy: Connection) -> None:
    run(copy, "DROP TABLE pgdyno_load_made; DELETE FROM pgdyno_load")
    run(copy, "INSERT INTO pgdyno_load VALUES ('workload', 'tpcc'), ('schema', 'spec'),"
              " ('warehouses', '3'), ('c_last', '7'), ('foreign_keys', 'false')")  # fmt: skip
    assert loaded_workload(copy).warehouses == 3
    with pytest.raises(DriveError, match="has a load that does not say what it made") as caught:
        load(copy, TPCB, replace(ONE, intent="drop_ours"))
    assert "table public.pgbench_accounts, " in str(caught.value.hint)


def test_indexes_that_were_built_again_are_still_the_loads(copy: Connection) -> None:
    """REINDEX CONCURRENTLY, which operators do to bloated indexes, gives them other OIDs."""
    before = run(copy, "SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid"
                       " WHERE relname ~ '^pgbench'")  # fmt: skip
    for table in ("pgbench_accounts", "pgbench_branches", "pgbench_tellers"):
        run(copy, f"REINDEX TABLE CONCURRENTLY {table}")
    load(copy, changed(TPCB, scale=2), replace(ONE, intent="top_up"))
    run(copy, "REINDEX TABLE CONCURRENTLY pgbench_accounts")
    load(copy, TPCB, replace(ONE, intent="drop_ours"))
    assert run(copy, "SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid"
                     " WHERE relname ~ '^pgbench'") == before  # fmt: skip


@pytest.mark.wide
def test_an_index_without_a_constraint_is_known_again_by_its_definition(empty: Connection) -> None:
    load(empty, TPCC, ONE)
    of_names = (
        "SELECT c.relname FROM pg_index JOIN pg_class c ON c.oid = indexrelid"
        " WHERE indrelid = 'customer'::regclass AND NOT indisprimary"
    )
    ((index,),) = run(empty, of_names)
    run(empty, f"REINDEX INDEX CONCURRENTLY {index}")
    run(empty, "CREATE INDEX mine ON customer (c_city)")
    refused(empty, "drop_ours", TPCC)
    # Somebody else's of the same name is told from it, and stays.
    run(empty, f"DROP INDEX {index}; ALTER INDEX mine RENAME TO {index}")
    refused(empty, "drop_ours", TPCC)
    run(empty, f"DROP INDEX {index}")
    load(empty, TPCB, replace(ONE, intent="drop_ours"))
    assert run(empty, "SELECT to_regclass('customer')") == [(None,)]


FUNCTIONS = "SELECT count(*) FROM pg_proc WHERE proname ~ '^pgdyno_'"
THEIRS = {
    "of the signature": "CREATE FUNCTION pgdyno_tpcb(arg_aid int, arg_bid int, arg_tid int,"
    " arg_delta int) RETURNS int LANGUAGE sql AS 'SELECT 42'",
    "of another signature": "CREATE FUNCTION pgdyno_tpcb(text) RETURNS int LANGUAGE sql"
    " AS 'SELECT 42'",
    "a procedure": "CREATE PROCEDURE pgdyno_tpcb(int) LANGUAGE sql AS 'SELECT 42'",
    "an aggregate": "CREATE AGGREGATE pgdyno_tpcb(int) (SFUNC = int4pl, STYPE = int)",
    "behind it in the search path": "CREATE SCHEMA other; CREATE FUNCTION other.pgdyno_tpcb(int)"
    " RETURNS int LANGUAGE sql AS 'SELECT 42'; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET"
    " search_path = public, other', current_database()); END $$",
    "a forged record": "CREATE FUNCTION pgdyno_tpcb(int) RETURNS int LANGUAGE sql AS 'SELECT 42';"
    " COMMENT ON FUNCTION pgdyno_tpcb(int) IS 'pgdyno made 42'",
}


def called(connection: Connection) -> Driven:
    """A window of face `procedure`, which makes its function."""
    workload = replace(TPCB, face="procedure", connections=1, terminals=1, requests_max=5)
    protocol = Protocol(1, 0.0, 1.0, 10.0, False, 0.03, 0.95, Rung.D0)
    return drive(connection, workload, protocol, None)


@pytest.mark.parametrize("what", few(THEIRS, "of the signature", "a forged record"))
def test_a_function_of_somebody_elses_is_not_replaced(copy: Connection, what: str) -> None:
    run(copy, THEIRS[what])
    before = database_facts(copy)
    with pytest.raises(DriveError, match=r"function .*, which pgdyno did not make") as caught:
        called(copy)
    assert "rename these" in str(caught.value.hint)
    assert database_facts(copy) == before


def test_functions_go_with_the_load_they_were_made_for(copy: Connection) -> None:
    for _ in range(2):  # the second replaces those of the first
        assert called(copy).error is None
    run(copy, "CREATE FUNCTION pgdyno_mine() RETURNS int LANGUAGE sql AS 'SELECT 42'")
    assert run(copy, FUNCTIONS) == [(2,)]
    load(copy, TPCB, replace(ONE, intent="drop_ours"))
    assert run(copy, "SELECT proname FROM pg_proc WHERE proname ~ '^pgdyno_'") == [("pgdyno_mine",)]


@pytest.mark.parametrize(
    "taking",
    [
        "CREATE OR REPLACE FUNCTION pgdyno_tpcb(arg_aid int, arg_bid int, arg_tid int,"
        " arg_delta int) RETURNS int LANGUAGE sql AS 'SELECT 42'",
        "ALTER ROUTINE pgdyno_tpcb SET work_mem = '1GB'",
        "CREATE SCHEMA other; ALTER ROUTINE pgdyno_tpcb SET SCHEMA other",
        "ALTER ROUTINE pgdyno_tpcb RENAME TO pgdyno_mine",
    ],
)
def test_a_function_that_others_took_over_is_theirs(copy: Connection, taking: str) -> None:
    assert called(copy).error is None
    run(copy, taking)
    load(copy, TPCB, replace(ONE, intent="drop_ours"))
    assert run(copy, FUNCTIONS) == [(1,)]


def test_what_leans_on_our_functions_stays(copy: Connection) -> None:
    assert called(copy).error is None
    run(copy, "CREATE VIEW mine AS SELECT pgdyno_tpcb(1, 1, 1, 1)")
    before = database_facts(copy)
    with pytest.raises(DriveError, match="others lean on tables of the earlier load"):
        load(copy, TPCB, replace(ONE, intent="drop_ours"))
    assert database_facts(copy) == before


def begin(connection: Connection) -> subprocess.Popen[str]:
    command = loading(connection, TPCB, connections=1, loaded_at_unix_s=LOADED_AT)
    return children.started(command, text=True, stderr=subprocess.PIPE)


def relayed(connection: Connection, at: int) -> int:
    """A load through a relay that kills it at a query, from 1; returns how many there were."""
    loaders: list[subprocess.Popen[str]] = []
    ready = threading.Event()

    def kill() -> None:
        ready.wait(DEADLINE_S)
        loaders[0].send_signal(signal.SIGKILL)
        loaders[0].wait(DEADLINE_S)

    with Relay(connection.host, at, kill) as relay:
        through = replace(connection, host=str(relay.folder))
        loaders.append(begin(through))
        ready.set()
        _, said = loaders[0].communicate(timeout=DEADLINE_S)
    assert loaders[0].returncode == (-signal.SIGKILL if at else 0), said
    left_alone(connection)
    return relay.queries


def taken_up(connection: Connection, then: Intent) -> None:
    """The next command, whether the load had begun, was under way, or had ended."""
    try:
        load(connection, TPCB, replace(ONE, intent=then), loaded_at_unix_s=LOADED_AT)
    except DriveError as error:
        if "has no load that could go on" in error.fact:
            load(connection, TPCB, ONE, loaded_at_unix_s=LOADED_AT)
        elif "is complete, there is nothing to resume" not in error.fact:
            raise


def survives(server: Connection, whole: Connection, at: int, then: Intent) -> None:
    """A load that was killed there can be resumed or dropped, and strangers see nothing."""
    connection = new_database(server, "killed")
    try:
        run(connection, BESIDE)
        before = strangers_facts(connection)
        relayed(connection, at)
        assert strangers_facts(connection) == before, at
        taken_up(connection, then)
        assert contents(connection, PGBENCH) == contents(whole, PGBENCH), (at, then)
        assert keys(connection) == keys(whole), (at, then)
        assert strangers_facts(connection) == before, (at, then)
        load(connection, changed(TPCB, scale=2), replace(ONE, intent="top_up"))
        assert strangers_facts(connection) == before, (at, then)
        survived("kills of a load at a query")
    finally:
        run(server, "DROP DATABASE killed WITH (FORCE)")


def test_a_load_killed_at_some_queries_harms_nobody(server: Connection, whole: Connection) -> None:
    count = queries(server)
    chosen = random.Random(SEED)
    survives(server, whole, chosen.randrange(1, count // 2), "resume")
    survives(server, whole, chosen.randrange(count // 2, count + 1), "drop_ours")


@pytest.mark.long
@pytest.mark.parametrize("then", ["resume", "drop_ours"])
def test_a_load_killed_at_any_query_harms_nobody(
    server: Connection, whole: Connection, then: Intent
) -> None:
    for at in range(1, queries(server) + 1):
        survives(server, whole, at, then)


def queries(server: Connection) -> int:
    """Of a load that nobody kills."""
    connection = new_database(server, "counted")
    try:
        return relayed(connection, 0)
    finally:
        run(server, "DROP DATABASE counted WITH (FORCE)")


@pytest.mark.long
@pytest.mark.parametrize("partitions", [None, Partitions("hash", 2)])
def test_loads_of_both_schemas_drop_what_they_made(
    server: Connection, partitions: Partitions | None
) -> None:
    connection = new_database(server, "schemas")
    try:
        run(connection, BESIDE)
        before = strangers_facts(connection)
        bmsql = changed(TPCC, schema="bmsql", foreign_keys=True, partitions=partitions)
        load(connection, bmsql)
        load(connection, changed(bmsql, warehouses=2), How(intent="top_up"))
        assert strangers_facts(connection) == before
        if partitions:
            detached = "DETACH PARTITION bmsql_order_line_p1"
            run(connection, f"ALTER TABLE bmsql_order_line {detached}")
        load(connection, changed(TPCC, partitions=partitions), How(intent="drop_ours"))
        assert strangers_facts(connection) == before
        left = "SELECT count(*) FROM pg_class WHERE relname ~ 'bmsql'"
        assert run(connection, left) == [(0,)]
        load(connection, TPCB, How(intent="drop_ours"))
        assert strangers_facts(connection) == before
        assert contents(connection, PGBENCH)["pgbench_accounts"][0] == 100_000
    finally:
        run(server, "DROP DATABASE schemas WITH (FORCE)")


@pytest.mark.long
def test_a_load_from_files_drops_what_it_made_and_no_more(
    server: Connection, tmp_path: Path
) -> None:
    export(tmp_path / "files", TPCC)
    files = read_folder(tmp_path / "files")
    connection = new_database(server, "files")
    try:
        for what in ("a view", "an enum", "an index", "another schema's table"):
            run(connection, IN_THE_WAY[what].replace("pgbench_tellers", "stock"))
            before = database_facts(connection)
            with pytest.raises(DriveError, match="the import would create such"):
                load_csv(connection, files)
            assert database_facts(connection) == before, what
            run(server, "DROP DATABASE files WITH (FORCE)")
            new_database(server, "files")
        run(connection, BESIDE)
        before = strangers_facts(connection)
        load_csv(connection, files)
        assert strangers_facts(connection) == before
        run(connection, "CREATE INDEX ours ON stock (s_quantity)")
        with pytest.raises(DriveError, match="others added to tables of the load: index ours"):
            load(connection, TPCB, How(intent="drop_ours"))
        run(connection, "DROP INDEX ours")
        load(connection, TPCB, How(intent="drop_ours"))
        assert strangers_facts(connection) == before
        assert run(connection, "SELECT to_regclass('stock')") == [(None,)]
    finally:
        run(server, "DROP DATABASE files WITH (FORCE)")
