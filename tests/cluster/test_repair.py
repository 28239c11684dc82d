"""A crashed primary of ours whose pages are torn by hand, repaired from its standby."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pgdyno
from pgdyno.folders import Folder
from pgdyno.guard.data_directory import claim
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.standby import Standby
from tests.attack.relay import Relay
from tests.children import started
from tests.cluster.conftest import TARGETS, VERSIONS
from tests.cluster.crashed_pair import OFF, Pair, crash, execute, pair_of, rows, torn
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest, folder: Path) -> Iterator[Pair]:
    with pair_of(request.param, folder) as found:
        yield found


def test_torn_pages_are_repaired_and_nothing_else_is_touched(pair: Pair) -> None:
    content = crash(pair)
    blocks = torn(pair)
    assert len(blocks) > 20

    dry = pair.repair(dry_run=True)
    assert dry.outcome == "would repair"
    assert dry.blocks_written >= len(blocks)
    assert list(pair.journals.glob("repair-*")) == []

    done = pair.repair()
    assert (done.outcome, done.blocks_written) == ("repaired", dry.blocks_written)
    assert done.blocks_written + done.blocks_alike + done.blocks_absent == done.blocks_needed
    assert (pair.journals.stat().st_mode & 0o777) == 0o700
    assert pair.repair().outcome == "nothing torn"

    pair.primary.start(OFF, recovers=True)
    assert pair.content() == content


@pytest.mark.wide
def test_what_was_repaired_can_be_undone(pair: Pair) -> None:
    crash(pair)
    torn(pair)
    data = pair.primary.data
    before = {path: path.read_bytes() for path in data.glob("base/*/*") if path.is_file()}
    before[data / "PG_VERSION"] = (data / "PG_VERSION").read_bytes()

    pair.repair()
    assert pair.guard.undo(journals=pair.journals).endswith("repair-0001")

    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(TargetError, match="there is no repair or rejoin of"):
        pair.guard.undo(journals=pair.journals)


@pytest.mark.wide
def test_a_standby_that_lacks_wal_is_given_it_or_refused(pair: Pair) -> None:
    content = crash(pair, unseen="UPDATE t SET v = 1 WHERE i % 10 = 0")
    torn(pair)
    with pytest.raises(
        TargetError, match=r"has replayed WAL up to .*, and needs it beyond"
    ) as caught:
        pair.repair(patience_s=0.5)
    assert "--standby-data" in (caught.value.hint or "")

    # Another cluster's WAL has segments of the same names, which would be replaced.
    foreign = pair.journals.parent / "foreign"
    segment = foreign / "pg_wal" / "000000010000000000000001"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"theirs")
    theirs = (pair.standby.cluster.data / "postmaster.pid").read_text()
    for pid_file in ("", "7\n/elsewhere\n", theirs.replace("\n", "0\n", 1)):
        (foreign / "postmaster.pid").write_text(pid_file)
        with pytest.raises(TargetError, match="is not the data directory of the standby at"):
            pair.repair(patience_s=0.5, standby_data=foreign)
    with pytest.raises(TargetError, match="is not the data directory of the standby at"):
        pair.repair(patience_s=0.5, standby_data=pair.primary.data)
    assert segment.read_bytes() == b"theirs"
    assert [one.name for one in segment.parent.iterdir()] == [segment.name]

    done = pair.repair(patience_s=0.5, standby_data=pair.standby.cluster.data)

    assert done.outcome == "repaired"
    pair.primary.start(OFF, recovers=True)
    assert pair.content() == content


@pytest.mark.wide
def test_wal_that_the_disk_lost_though_it_was_flushed_is_refused(pair: Pair) -> None:
    crash(pair)
    needs = pair.crashed().needs
    assert needs is not None
    # Of what the standby has: a record that came after all changes may not have reached it.
    ((replayed,),) = rows(pair.standby.cluster, "SELECT pg_last_wal_replay_lsn() - '0/0'::pg_lsn")
    assert 0 <= lsn_of(needs.end_lsn) - int(replayed) < 1 << 20
    end = int(replayed) % (16 << 20)
    path = pair.primary.data / "pg_wal" / needs.ended.file
    with path.open("r+b") as segment:
        segment.seek(end - 16)
        segment.write(b"\xee" * 16)

    with pytest.raises(TargetError, match=r"has replayed WAL up to .*, the crashed cluster's ends"):
        pair.repair()


def test_what_may_not_be_repaired_is_refused(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match=r"a server runs on .*: process \d+"):
        pair.repair()
    crash(pair)
    torn(pair)
    monkeypatch.setattr("pgdyno.api.repair._PATIENCE_S", 0.0)
    with Folder.hold(pair.primary.data) as another:  # whose journals may lie elsewhere
        assert claim(another)
        with pytest.raises(TargetError, match="another repair or rejoin works on"):
            pair.repair()
    with pytest.raises(TargetError, match=r"host=/nowhere .* does not answer"):
        pgdyno.Guard(pair.primary.data, "host=/nowhere user=x dbname=y").repair(
            journals=pair.journals
        )
    pair.standby.stop(clean=True)
    target = Setting("recovery_target_lsn", "FF/0", Origin(OriginKind.PLAN, "a test"))
    pair.standby.cluster.start([target], recovers=True)
    with pytest.raises(TargetError, match="the standby has recovery_target_lsn set"):
        pair.repair()
    pair.standby.stop(clean=True)
    pair.standby.cluster.start([], recovers=True)
    execute(pair.standby.cluster, "SELECT pg_promote()")
    with pytest.raises(TargetError, match="no standby any more: it was promoted"):
        pair.repair()
    with pytest.raises(TargetError, match="is no data directory"):
        pgdyno.Guard(pair.journals, pair.conninfo)


@pytest.mark.wide
def test_all_pages_are_taken_from_the_very_standby_that_is_held(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a list of hosts, or what stands before several servers, leads to another one."""
    monkeypatch.setattr("pgdyno.guard.fetch._BATCH_BLOCKS", 16)  # so that each session has some
    user = postgres_user()
    with pair_of("embedded-18", folder) as pair:
        second = Standby(pair.primary, find_binaries(TARGETS["embedded-18"], user), user, "second")
        try:
            second.start()
            content = crash(pair)
            torn(pair)
            one, other = (at.connection() for at in (pair.standby.cluster, second.cluster))
            before = contents(pair.primary.data)
            with Relay(one.host, -1, lambda: None) as relay:

                def lead_elsewhere(event: str) -> None:
                    if event.startswith("fetching"):
                        relay.leads_to(other.host)

                conninfo = f"host={relay.folder} port={one.port} user={one.user} dbname=postgres"
                with pytest.raises(TargetError, match="another server answers at"):
                    pgdyno.Guard(pair.primary.data, conninfo).repair(
                        journals=pair.journals, on_event=lead_elsewhere
                    )
            assert contents(pair.primary.data) == before
            assert list(pair.journals.glob("repair-*")) == []

            both = pgdyno.Guard(
                pair.primary.data,
                f"host={one.host},{other.host} port={one.port},{other.port} user={one.user}"
                " dbname=postgres load_balance_hosts=random",
            )
            for _ in range(5):
                dry = both.repair(journals=pair.journals, dry_run=True)
                assert dry.outcome == "would repair"
            assert both.repair(journals=pair.journals).outcome == "repaired"
            pair.primary.start(OFF, recovers=True)
            assert pair.content() == content
        finally:
            second.close()


def contents(data: Path) -> dict[str, bytes]:
    """Of each file of a data directory that is not running."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and not path.is_socket()
    }


@pytest.mark.wide
def test_a_cluster_that_was_stopped_in_good_order_needs_none(pair: Pair) -> None:
    pair.primary.stop(clean=True)

    assert pair.repair().outcome == "not needed"


_REPAIR = """
import os, signal, sys
import pgdyno.guard.writing as writing
import pgdyno

real, left = os.pwrite, [int(sys.argv[4])]
def pwrite(*words):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*words)
writing.os.pwrite = pwrite
pgdyno.Guard(sys.argv[1], sys.argv[2]).repair(journals=sys.argv[3])
"""


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.wide
def test_nothing_is_written_where_a_server_was_started_meanwhile(pair: Pair, runs: bool) -> None:
    """Data that are not armed have no interlock; also where it does not run any more."""
    content = crash(pair)
    version = (pair.primary.data / "PG_VERSION").read_bytes()

    def start(event: str) -> None:
        if event.startswith("writing"):
            pair.primary.start(OFF, recovers=True)
            if not runs:
                pair.primary.stop(clean=False)

    refused = r"a server runs on .*: process \d+" if runs else "was started meanwhile: it was in"
    with pytest.raises(TargetError, match=refused):
        pair.repair(on_event=start)
    assert (pair.primary.data / "PG_VERSION").read_bytes() == version
    [state] = pair.journals.glob("repair-*/state")
    assert json.loads(state.read_text())["state"] == "undone", "nobody carries it out later"
    if not runs:
        pair.primary.start(OFF, recovers=True)
    assert pair.content() == content
    pair.primary.stop(clean=True)
    assert pair.repair().outcome == "not needed"


@pytest.mark.wide
@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_repair_that_is_killed_while_it_writes_is_finished_by_the_next(
    pair: Pair, writes: int
) -> None:
    content = crash(pair)
    torn(pair)
    version = (pair.primary.data / "PG_VERSION").read_bytes()
    killed = started(
        [sys.executable, "-c", _REPAIR, str(pair.primary.data), pair.conninfo, str(pair.journals),
         str(writes)],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert killed.wait(DEADLINE_S) == -signal.SIGKILL
    status, closed = pair.guard.status(), writes > 0  # it closes the data before all else
    assert (status.code, any("A repair is at work, or" in one for one in status.wrong)) == (
        closed, closed,
    )  # fmt: skip
    assert ("data-whole" in [one.name for one in pair.guard.check().refused]) == closed
    if closed:
        with pytest.raises(TargetError, match="version 0"):  # whoever starts it
            pair.primary.start(OFF, recovers=True)
    state = pair.journals / "repair-0001" / "state"
    before = contents(pair.primary.data), state.read_bytes()
    dry = pair.repair(dry_run=True)
    assert (dry.outcome, dry.journal) == ("would finish", str(state.parent))
    assert dry.blocks_written == json.loads(before[1])["blocks"] > 20
    assert (contents(pair.primary.data), state.read_bytes()) == before
    if writes == 2:  # by another one that does not know of the journal
        fresh = pair.guard.repair(journals=pair.journals.with_name("others"))
        assert fresh.outcome == "repaired"
        assert (pair.primary.data / "PG_VERSION").read_bytes() == version

    done = pair.repair()

    assert done.outcome == "finished"
    assert (pair.primary.data / "PG_VERSION").read_bytes() == version
    assert pair.guard.status().wrong == ()
    assert pair.repair().outcome == "nothing torn"
    pair.primary.start(OFF, recovers=True)
    assert pair.content() == content
