"""How far archiving is behind the WAL, as the sampler sees it on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.sample.sampler import Sampler, Subject
from pgdyno.sample.samplers import server_statistics
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import Cluster, initdb
from tests.cluster.conftest import OLD_VERSION_FIRST, TARGETS
from tests.waiting import until

pytestmark = pytest.mark.cluster
BEHIND = "archive.behind_bytes"
SEGMENT_BYTES = 16 << 20
SETTINGS = {"archive_mode": "on", "archive_command": "false"}


@pytest.mark.parametrize("name", OLD_VERSION_FIRST)
def test_archiving_that_fails_is_seen_to_fall_behind(name: str, folder: Path) -> None:
    user = postgres_user()
    binaries = find_binaries(TARGETS[name], user)
    initdb(binaries, folder / "data", user, ("--no-sync",))
    cluster = Cluster(binaries, folder / "data", user, "socket")
    origin = Origin(OriginKind.PLAN, "test")
    try:
        cluster.start([Setting(key, value, origin) for key, value in SETTINGS.items()])
        with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
            found = server_statistics.sampler(Subject(session, ["postgres"]))
            assert isinstance(found, list)
            sampler = found[0]
            assert isinstance(sampler, Sampler)
            assert BEHIND not in sampler.take(), "no segment was tried yet"
            _fill_segment(session)
            until(lambda: BEHIND in sampler.take(), "the first segment fails")
            before = sampler.take()[BEHIND]
            for _ in range(3):
                _fill_segment(session)
            assert sampler.take()[BEHIND] - before > 2 * SEGMENT_BYTES
            session.execute("ALTER SYSTEM SET archive_command = 'true'")
            session.execute("SELECT pg_reload_conf()")
            until(
                lambda: 0 <= sampler.take()[BEHIND] < SEGMENT_BYTES,
                "archiving caught up",
            )
    finally:
        cluster.close()


def _fill_segment(session: psycopg.Connection[Any]) -> None:
    session.execute("SELECT pg_logical_emit_message(true, 'test', 'something')")
    session.execute("SELECT pg_switch_wal()")
