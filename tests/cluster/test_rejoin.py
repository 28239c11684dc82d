"""Crashed clusters with torn pages made standbys of a running primary, on real servers."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pgdyno
from pgdyno.drills import checks
from pgdyno.folders import Folder
from pgdyno.guard import leader
from pgdyno.guard.leader import Leader
from pgdyno.guard.timelines import lines_of
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.repair import RejoinReport
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.pages.segment_names import history_name, place_name
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import Cluster
from tests.children import started
from tests.cluster.conftest import TARGETS, cluster_apart
from tests.cluster.crashed_pair import (
    OFF,
    Pair,
    content_of,
    crash,
    execute,
    pair_of,
    rows,
    torn,
    torn_at,
)
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
_TEST = Origin(OriginKind.PLAN, "a test")
LOGGED = (*OFF, Setting("wal_log_hints", "on", _TEST), Setting("wal_keep_size", "256MB", _TEST))
SLOT = "rejoined"


VERSIONS = (pytest.param("debian-15", marks=pytest.mark.long), "embedded-18")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pair(version: str, folder: Path) -> Iterator[Pair]:
    with pair_of(version, folder, LOGGED) as found:
        yield found


def promoted(pair: Pair) -> Cluster:
    """The standby, which is a primary now and goes on."""
    new = pair.standby.cluster
    execute(new, "SELECT pg_promote()")
    execute(
        new,
        f"SELECT pg_create_physical_replication_slot('{SLOT}', true)",
        "UPDATE t SET v = v + 1 WHERE i % 7 = 0",
        "INSERT INTO t SELECT i, 5 FROM generate_series(30001, 31000) AS i",
        "CREATE TABLE u AS SELECT i FROM generate_series(1, 2000) AS i",
        "CREATE UNLOGGED TABLE w AS SELECT i FROM generate_series(1, 2000) AS i",
    )
    return new


def conninfo(cluster: Cluster) -> str:
    at = cluster.connection()
    return f"host={at.host} port={at.port} user={at.user} dbname=postgres"


def rejoin(old: Cluster, new: Cluster, pair: Pair, **keys: Any) -> RejoinReport:
    guard = pgdyno.Guard(old.data, primary=conninfo(new))
    words = {"follow": conninfo(new), "slot": SLOT} | keys
    return guard.rejoin(journals=pair.journals, **words)


def image(data: Path) -> dict[str, tuple[int, str]]:
    """Every file of a data directory."""
    return {
        str(path.relative_to(data)): (
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in data.rglob("*")
        if path.is_file() and not path.is_socket()
    }


def require_same(old: Cluster, new: Cluster, version: str) -> None:
    """The one follows the other, holds the same, and nothing of it is damaged."""
    lsn = rows(new, "SELECT pg_current_wal_flush_lsn()")[0][0]
    until(
        lambda: rows(old, f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'") == [(True,)], "it replays"
    )
    assert rows(old, "SELECT pg_is_in_recovery()") == [(True,)]
    until(
        lambda: rows(old, "SELECT status FROM pg_stat_wal_receiver") == [("streaming",)],
        "it streams",
    )
    assert content_of(old) == content_of(new)
    for table in ("t", "u", "pg_class", "pg_attribute"):
        query = f"SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM {table} AS x"
        assert rows(old, query) == rows(new, query), table
    execute(old, "SELECT pg_promote()")  # so that it can be looked at closely
    user = postgres_user()
    binaries = find_binaries(TARGETS[version], user)
    assert checks.relations(old, binaries, user) == []
    assert checks.visibility([old.connection()]) == []
    summed = checks.summed_files(old)
    old.stop(clean=True)
    if summed is not None:
        with Folder.hold(old.data) as data:
            assert checks.checksums(old, data, summed, binaries, user) == []


def test_an_old_primary_with_torn_pages_becomes_a_standby_of_the_new_one(
    pair: Pair, version: str
) -> None:
    crash(pair)
    assert len(torn(pair)) > 20
    new = promoted(pair)
    before = image(pair.primary.data)

    dry = rejoin(pair.primary, new, pair, dry_run=True)
    assert (dry.outcome, dry.journal) == ("would rejoin", None)
    assert list(pair.journals.glob("*-*")) == []
    assert image(pair.primary.data) == before

    done = rejoin(pair.primary, new, pair)
    assert done.outcome == "rejoined"
    assert not done.whole
    assert done.fork_lsn is not None
    assert done.blocks_written >= dry.blocks_written > 20

    pair.primary.start(LOGGED, recovers=True)
    require_same(pair.primary, new, version)


@pytest.mark.wide
def test_what_the_old_primary_did_after_the_fork_is_gone(pair: Pair, version: str) -> None:
    execute(pair.primary, "CHECKPOINT", "UPDATE t SET v = i WHERE i % 10 = 0", "CHECKPOINT")
    pair.standby.wait_replayed(str(rows(pair.primary, "SELECT pg_current_wal_flush_lsn()")[0][0]))
    new = promoted(pair)
    execute(
        pair.primary,
        "UPDATE t SET v = -1 WHERE i % 9 = 0",
        "INSERT INTO t SELECT i, 7 FROM generate_series(40001, 44000) AS i",
        "SELECT count(*) FROM t",  # which leaves hints of what is gone soon
        "CREATE TABLE gone AS SELECT i FROM generate_series(1, 2000) AS i",
        "CHECKPOINT",
        "UPDATE t SET v = -2 WHERE i % 11 = 0",
    )
    pair.primary.stop(clean=False)
    assert len(torn(pair)) > 20

    done = rejoin(pair.primary, new, pair)

    assert done.end_lsn is not None
    assert done.fork_lsn is not None
    assert lsn_of(done.end_lsn) > lsn_of(done.fork_lsn)
    pair.primary.start(LOGGED, recovers=True)
    assert rows(pair.primary, "SELECT count(*) FROM pg_class WHERE relname = 'gone'") == [(0,)]
    require_same(pair.primary, new, version)


@pytest.mark.wide
def test_a_standby_with_torn_pages_is_repaired_from_its_primary(pair: Pair, version: str) -> None:
    execute(pair.primary, "CHECKPOINT")
    execute(pair.primary, "UPDATE t SET v = i WHERE i % 10 = 0")
    standby = pair.standby.cluster
    pair.standby.wait_replayed(str(rows(pair.primary, "SELECT pg_current_wal_flush_lsn()")[0][0]))
    pair.standby.stop(clean=False)
    assert len(torn_at(standby.data)) > 20
    execute(  # the primary's pages are newer than the end of the standby's WAL
        pair.primary,
        "UPDATE t SET v = v + 1 WHERE i % 7 = 0",
        "CREATE TABLE u AS SELECT i FROM generate_series(1, 2000) AS i",
        "VACUUM t",
        "CHECKPOINT",
    )
    with pytest.raises(TargetError, match="the cluster is a standby") as caught:
        pgdyno.Guard(standby.data, pair.conninfo).repair(journals=pair.journals)
    assert "pgdyno guard rejoin" in (caught.value.hint or "")

    done = rejoin(standby, pair.primary, pair, follow="", slot="")

    assert (done.outcome, done.fork_lsn) == ("rejoined", None)
    pair.standby.start(LOGGED)
    require_same(standby, pair.primary, version)


_KILLED = """
import os, signal, sys
import pgdyno
from pgdyno.guard import journal, writing

data, primary, journals, what, left = *sys.argv[1:5], [int(sys.argv[5])]
def counted(real):
    def call(*words, **keys):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*words, **keys)
    return call
if what == "fetch":
    journal.JournalWriter.add = counted(journal.JournalWriter.add)
elif what == "end":
    journal.said = counted(journal.said)
else:
    writing.os.pwrite = counted(os.pwrite)
guard = pgdyno.Guard(data, primary=primary)
if what == "undo":
    guard.undo(journals=journals)
else:
    guard.rejoin(journals=journals, follow=primary, slot="rejoined")
"""


def killed(pair: Pair, new: Cluster, what: str, step: int) -> None:
    """Rejoin, or take it back, in a process that is killed at a step."""
    words = [sys.executable, "-c", _KILLED, str(pair.primary.data), conninfo(new),
             str(pair.journals), what, str(step)]  # fmt: skip
    assert started(words, stderr=subprocess.DEVNULL).wait(DEADLINE_S) == -signal.SIGKILL


def journal_state(pair: Pair) -> dict[str, bytes]:
    """How far each journal came."""
    return {one.parent.name: one.read_bytes() for one in pair.journals.glob("*/state")}


@pytest.mark.wide
def test_a_rejoin_that_is_killed_is_finished_or_taken_back(pair: Pair, version: str) -> None:
    crash(pair)
    torn(pair)
    new = promoted(pair)
    before = image(pair.primary.data)

    killed(pair, new, "fetch", 30)
    assert image(pair.primary.data) == before
    for what, step in (("write", 0), ("write", 1), ("write", 40), ("end", 0)):
        killed(pair, new, what, step)
        if step:
            with pytest.raises(TargetError, match="version 0"):  # whoever starts it
                pair.primary.start(LOGGED, recovers=True)
            with pytest.raises(TargetError, match=r"a rejoin of .* was broken off"):
                pgdyno.Guard(pair.primary.data, conninfo(new)).repair(journals=pair.journals)
        half, state = image(pair.primary.data), journal_state(pair)
        assert rejoin(pair.primary, new, pair, dry_run=True).outcome == "would finish"
        assert (image(pair.primary.data), journal_state(pair)) == (half, state)
        assert rejoin(pair.primary, new, pair).outcome == "finished"
        assert rejoin(pair.primary, new, pair).outcome == "finished"
        if step == 1:
            killed(pair, new, "undo", 60)
            assert rejoin(pair.primary, new, pair).outcome == "finished"
        pgdyno.Guard(pair.primary.data).undo(journals=pair.journals)
        after = image(pair.primary.data)
        lost = set(before) - set(after)
        assert all(name.startswith("pg_wal/") for name in lost)  # segments to be written again
        assert {name: after[name] for name in after if name in before} == {
            name: before[name] for name in after if name in before
        }
        assert set(after) <= set(before)

    assert rejoin(pair.primary, new, pair).outcome == "rejoined"
    pair.primary.start(LOGGED, recovers=True)
    with pytest.raises(TargetError, match="a server runs on"):
        pgdyno.Guard(pair.primary.data).undo(journals=pair.journals)
    require_same(pair.primary, new, version)
    with pytest.raises(TargetError, match="was started since"):
        pgdyno.Guard(pair.primary.data).undo(journals=pair.journals)


@pytest.mark.wide
def test_what_may_not_be_rejoined_is_refused(pair: Pair) -> None:
    new = pair.standby.cluster
    with pytest.raises(TargetError, match=r"a server runs on .*: process \d+"):
        rejoin(pair.primary, new, pair)
    with pytest.raises(PlanError, match="has a password"):
        rejoin(pair.primary, new, pair, follow="host=a password=b")
    crash(pair)
    with pytest.raises(PlanError, match="no primary is named"):
        pgdyno.Guard(pair.primary.data).rejoin(journals=pair.journals)
    with pytest.raises(TargetError, match="is a standby, not a primary"):
        rejoin(pair.primary, new, pair)
    promoted(pair)
    before = image(pair.primary.data)
    with pytest.raises(TargetError, match="has no slot nobody") as caught:
        rejoin(pair.primary, new, pair, slot="nobody")
    assert "pg_create_physical_replication_slot('nobody', true)" in (caught.value.hint or "")
    (pair.primary.data / "pg_tblspc" / "99999").mkdir()
    with pytest.raises(TargetError, match="that the primary does not have: 99999"):
        rejoin(pair.primary, new, pair)
    (pair.primary.data / "pg_tblspc" / "99999").rmdir()
    execute(new, "CREATE DATABASE copied STRATEGY file_copy")
    with pytest.raises(TargetError, match="has a database copied") as caught:
        rejoin(pair.primary, new, pair)
    assert "--whole" in (caught.value.hint or "")
    # Who rules the primary may put other functions before PostgreSQL's own.
    execute(
        new,
        "CREATE SCHEMA before",
        "CREATE FUNCTION before.pg_ls_dir(text, boolean, boolean) RETURNS SETOF text LANGUAGE sql"
        " AS $$ SELECT '../../stolen'::text WHERE $1 = 'base' $$",
        "CREATE FUNCTION before.pg_stat_file(text, boolean, OUT size bigint, OUT isdir boolean)"
        " LANGUAGE sql AS $$ SELECT 8::bigint, false $$",
        f"ALTER ROLE {new.connection().user} SET search_path = before, pg_catalog, public",
    )
    with pytest.raises(TargetError, match=r"base/../../stolen' is no path of a file below a data"):
        rejoin(pair.primary, new, pair, whole=True)
    assert not (pair.primary.data.parent / "stolen").exists()
    assert image(pair.primary.data) == before
    assert os.listdir(pair.journals) == ["lock"]


@pytest.mark.wide
def test_nothing_is_written_where_a_server_was_started_meanwhile(pair: Pair) -> None:
    crash(pair)
    new, old = promoted(pair), pair.primary

    def start(event: str) -> None:
        if event.startswith("writing"):
            old.start(LOGGED, recovers=True)

    with pytest.raises(TargetError, match=r"a server runs on .*: process \d+"):
        rejoin(old, new, pair, on_event=start)
    assert rows(old, "SELECT count(*) FROM t WHERE v > 0") == [(2000,)], "it is what it was"
    old.stop(clean=False)
    assert rejoin(old, new, pair).outcome == "rejoined"


@pytest.mark.wide
def test_where_wal_does_not_say_enough_every_file_is_copied(pair: Pair, version: str) -> None:
    crash(pair)
    torn(pair)
    new = promoted(pair)
    execute(new, "CREATE DATABASE copied STRATEGY file_copy")

    done = rejoin(pair.primary, new, pair, whole=True, slot="")

    assert (done.outcome, done.whole, done.end_lsn) == ("rejoined", True, None)
    pair.primary.start(LOGGED, recovers=True)
    require_same(pair.primary, new, version)


@pytest.mark.wide
def test_wal_that_the_old_disk_lost_is_refused(pair: Pair) -> None:
    crash(pair)
    new = promoted(pair)
    # What the standby had: a busy one may lack the last records, which nobody then misses.
    ((_, fork_lsn),) = lines_of((new.data / "pg_wal" / history_name(2)).read_text())
    last = lsn_of(fork_lsn) - 16
    segment_bytes = 16 << 20
    name = f"{1:08X}{place_name(last, segment_bytes)}"
    with (pair.primary.data / "pg_wal" / name).open("r+b") as segment:
        segment.seek(last % segment_bytes)
        segment.write(b"\xee" * 16)

    with pytest.raises(TargetError, match=r"WAL ends at .*, the primary has it up to"):
        rejoin(pair.primary, new, pair)


@pytest.mark.wide
def test_hints_that_no_wal_names_are_refused(folder: Path) -> None:
    with pair_of("debian-15", folder) as pair:  # without checksums and wal_log_hints
        new = promoted(pair)
        execute(pair.primary, "UPDATE t SET v = -1 WHERE i % 9 = 0")
        pair.primary.stop(clean=False)

        with pytest.raises(TargetError, match="without checksums and wal_log_hints"):
            rejoin(pair.primary, new, pair)


@pytest.mark.wide
def test_more_files_than_are_taken_end_the_session_with_a_primary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However much it would still tell: nobody waits for the rest of its answer."""
    with cluster_apart("embedded-18", "socket") as cluster:
        with Leader(cluster.connection()) as primary:
            files = len(primary.tree(["base", "global"]))
            assert primary.spaces() == set()
        monkeypatch.setattr(leader, "FILES_MAX", 100)
        with Leader(cluster.connection()) as primary:
            with pytest.raises(TargetError, match=r"tells of 101 files at .* taken are 100"):
                primary.tree(["base", "global"])
            assert primary.session.closed
        monkeypatch.setattr(leader, "FILES_MAX", files)
        with Leader(cluster.connection()) as primary:
            assert len(primary.tree(["base", "global"])) == files
