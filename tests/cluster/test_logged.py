"""The log of a server that is not ours, read by SQL by a role with no more than it takes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.sample.sampler import Missing, Snapshot, Subject
from pgdyno.sample.samplers import server_events
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster
SETTINGS = {
    "logging_collector": "on", "log_timezone": "Europe/Berlin", "log_checkpoints": "on",
    "log_line_prefix": "%m [%p] %q%u@%d ", "log_temp_files": "0", "work_mem": "64kB",
    "autovacuum": "off",
}  # fmt: skip


@pytest.fixture(params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def server(request: pytest.FixtureRequest, home_env: object) -> Iterator[pgdyno.Server]:
    with pgdyno.Server(SETTINGS, bindir=request.param) as running:
        yield running


def test_a_role_reads_events_with_the_grants_that_it_is_told(server: pgdyno.Server) -> None:
    arguments = server.connection.arguments()
    with server.connect() as owner:
        owner.execute("CREATE ROLE watcher LOGIN")
        with psycopg.connect(**{**arguments, "user": "watcher"}, autocommit=True) as session:
            subject = Subject(session, ["postgres"])
            missing = server_events.sampler(subject)
            assert isinstance(missing, Missing)
            assert missing.remedy.startswith("GRANT pg_monitor TO watcher; GRANT EXECUTE ON FUN")
            owner.execute(missing.remedy.encode())
            owner.execute("CHECKPOINT")  # over before anybody looks
            readable = server_events.sampler(subject)
            assert isinstance(readable, list)
            (look,) = readable
            assert isinstance(look, Snapshot)
            assert [row["kind"] for row in look.take()] == ["read"]
            began_ns = time.time_ns()
            owner.execute("CHECKPOINT")
            owner.execute("SELECT count(*) FROM (SELECT i FROM generate_series(1, 99999) i"
                          " ORDER BY -i) many")  # fmt: skip

            def kinds() -> dict[str, Any]:
                return {str(row["kind"]): row for row in look.take()}

            until(lambda: {"checkpoint", "temporary_file"} <= kinds().keys(), "both in the log")
            found = kinds()
            owner.execute("ALTER SYSTEM SET log_lock_waits = off")
            owner.execute("SELECT pg_reload_conf()")

            def lacking() -> list[str]:
                told = server_events.sampler(subject)
                return [one.name for one in told if isinstance(one, Missing)]

            until(lambda: lacking() == ["waits for locks in the log"], "that it is not written")
    ended_ns = time.time_ns()
    assert json.loads(found["read"]["detail"]) == {"left_out_bytes": 0}
    assert found["read"]["start_ns"] <= began_ns
    for kind in ("checkpoint", "temporary_file"):  # a log tells milliseconds
        assert began_ns - 1_000_000 <= found[kind]["start_ns"] <= ended_ns, kind
    assert json.loads(found["temporary_file"]["detail"])["file_bytes"] > 0
    assert "immediate" in json.loads(found["checkpoint"]["detail"])["cause"]
