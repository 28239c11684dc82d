"""How much WAL waits for its archive: known by what was archived, or failed, and else not told."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import pgdyno
from pgdyno.catalog.waits import wait_of
from pgdyno.sample.sampler import Sampler, Subject
from pgdyno.sample.samplers import server_statistics
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster
BEHIND = "archive.behind_bytes"
SEGMENT = 16 << 20


@pytest.fixture(scope="module", params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def server(request: pytest.FixtureRequest, session_home: object) -> Iterator[pgdyno.Server]:
    settings = {"archive_mode": "on", "archive_command": "/bin/true", "autovacuum": "off"}
    with pgdyno.Server(settings, bindir=request.param) as running:
        yield running


def behind(session: psycopg.Connection[tuple[object, ...]]) -> float | None:
    subject = Subject(session, ["postgres"], wait_of=wait_of)
    found = server_statistics.sampler(subject)
    assert isinstance(found, list)
    assert isinstance(found[0], Sampler)
    return found[0].take().get(BEHIND)


def written(session: psycopg.Connection[tuple[object, ...]]) -> None:
    session.execute("SELECT pg_logical_emit_message(false, 'a', 'b')")
    session.execute("SELECT pg_switch_wal()")


def test_wal_that_is_not_archived_is_told_where_it_is_known(server: pgdyno.Server) -> None:
    with server.connect() as session:

        def count(what: str) -> bool:
            return session.execute(f"SELECT {what} FROM pg_stat_archiver").fetchone() == (True,)

        written(session)
        until(lambda: count("last_archived_wal IS NOT NULL"), "a segment is archived")
        until(lambda: (behind(session) or 0) < SEGMENT, "all of them are")
        session.execute("SELECT pg_stat_reset_shared('archiver')")
        until(lambda: count("last_archived_wal IS NULL"), "the statistics are reset")
        assert behind(session) is None, "it is not all that was ever written"

        session.execute("ALTER SYSTEM SET archive_command = '/bin/false'")
        session.execute("SELECT pg_reload_conf()")
        until(lambda: session.execute("SHOW archive_command").fetchone() == ("/bin/false",), "set")
        written(session)
        written(session)
        until(lambda: count("last_failed_wal IS NOT NULL"), "a segment fails")
        found = behind(session)
        assert found is not None
        assert SEGMENT <= found < 3 * SEGMENT, "the first may have been archived before"
