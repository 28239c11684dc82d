"""A repair and its interlock where it is not sure what is torn: on real servers.

A power cut is what it does to files in memory and to the kernel's boot id; pages are not torn here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno import Guard
from pgdyno.guard import arming
from pgdyno.guard.boot import boot_id
from pgdyno.guard.control import read_control
from pgdyno.guard.data_directory import DataDirectory, data_directory
from pgdyno.guard.include_file import include_path, write_pages
from pgdyno.guard.interlock import (
    STATE,
    admit,
    forget_armed,
    included,
    inode_of,
    read_armed,
    release_copy,
    remove_line,
    write_armed,
    write_line,
)
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.guard import Life, Lock
from pgdyno.shell import postgres_user, run
from tests.cluster.guarded import (
    ACCEPTED,
    AT_ONCE,
    ROLE,
    Guarded,
    execute,
    kill_server,
    pair,
    value,
)

pytestmark = pytest.mark.cluster
VERSIONS = ("embedded-18", pytest.param("debian-15", marks=pytest.mark.long))


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    with pair(request.param) as found:
        yield found


@pytest.fixture
def guarded(shared: Guarded) -> Iterator[Guarded]:
    """A pair that is not armed, and runs; after the test as well."""
    try:
        yield shared
    finally:
        shared.put_right()


def change_without_images(guarded: Guarded) -> None:
    """What a repair has to fetch, should the power go."""
    directory = data_directory(guarded.data)
    write_pages(directory, guarded.include, "off")
    directory.reload()
    guarded.until_off()
    execute(
        guarded.primary,
        "CREATE TABLE IF NOT EXISTS changed (i int);\nINSERT INTO changed SELECT"
        " generate_series(1, 1000);\nCHECKPOINT;\nUPDATE changed SET i = i + 1",
    )
    guarded.standby.wait_replayed(value(guarded.primary, "SELECT pg_current_wal_flush_lsn()"))


def test_where_the_kernel_lived_on_a_repair_takes_a_word_that_pages_are_torn(
    guarded: Guarded, folder: Path
) -> None:
    """Else whoever starts a server again might do so while its pages are written."""
    guarded.arm()
    change_without_images(guarded)
    kill_server(guarded.primary)
    directory = data_directory(guarded.data)
    journals = folder / "journals"
    with pytest.raises(TargetError, match="the kernel has not stopped since it was armed"):
        guarded.guard().repair(journals=journals)
    shutil.rmtree(guarded.include.parent)  # the same where only the file is gone
    with pytest.raises(TargetError, match="the kernel has not stopped since it was armed"):
        guarded.guard().repair(journals=journals)
    assert admit(directory) is Lock.same_boot

    guarded.guard().repair(journals=journals, accept=["same-boot"], dry_run=True)
    assert guarded.status().lock is Lock.open
    nowhere = Guard(guarded.data, "host=/nowhere user=x dbname=y")
    with pytest.raises(TargetError, match="does not answer"):
        nowhere.repair(journals=journals, accept=["same-boot"])
    assert guarded.status().lock is Lock.repair, "it is shut, as somebody said that it must be"
    assert guarded.pg_ctl("start")[0] != 0
    guarded.guard().repair(journals=journals)
    assert guarded.status().lock is Lock.open
    assert guarded.pg_ctl("start")[0] == 0


@pytest.mark.parametrize(
    "knows",
    [
        pytest.param(True, id="by-boot-id"),
        pytest.param(False, id="by-its-start", marks=pytest.mark.wide),
    ],
)
def test_a_standby_that_may_have_lost_power_is_refused_until_somebody_says_that_it_is_whole(
    guarded: Guarded, folder: Path, knows: bool
) -> None:
    """Its own restart goes unseen otherwise, and its torn pages would replace good ones."""

    def let(statement: str) -> None:
        execute(guarded.primary, statement)
        guarded.standby.wait_replayed(value(guarded.primary, "SELECT pg_current_wal_flush_lsn()"))

    if knows:
        let(f"GRANT pg_read_server_files TO {ROLE}")
    directory = data_directory(guarded.data)
    try:
        guarded.arm()
        assert [one.name for one in guarded.guard().check(ACCEPTED).refused] == []
        armed = read_armed(directory)
        assert armed is not None
        assert armed.standby_life is not None
        assert armed.standby_life.boot_id == (boot_id() if knows else "")
        lost = replace(armed, standby_life=Life("another" if knows else "", "0"))
        write_armed(directory, lost)
        (refused,) = guarded.guard().check(ACCEPTED).refused
        assert refused.name == "standby-power"
        assert ("its machine was restarted" if knows else "it was restarted") in refused.found
        assert not guarded.guard().arm(ACCEPTED).allowed

        assert guarded.guard().arm([*ACCEPTED, "standby-power"]).allowed
        again = read_armed(directory)
        assert again is not None
        assert again.standby_life == armed.standby_life
        assert again.accepted == ACCEPTED, "it was said of what was found, and is asked again"

        write_armed(directory, lost)
        change_without_images(guarded)
        guarded.cut_power()
        what = "machine" if knows else "server"
        with pytest.raises(TargetError, match=f"{what} was restarted .* both are torn") as caught:
            guarded.guard().repair(journals=folder / "journals")
        assert "--accept standby-power" in (caught.value.hint or "")
        assert guarded.status().lock is Lock.repair
        cut = read_armed(directory)
        assert cut is not None
        write_armed(directory, replace(cut, standby_life=None))  # as an earlier pgdyno armed it
        with pytest.raises(
            TargetError, match="is not known: its boot id was not written"
        ) as caught:
            guarded.guard().repair(journals=folder / "journals")
        assert "--accept standby-power" in (caught.value.hint or "")
        with pytest.raises(PlanError, match="asks nothing that separate-power would accept"):
            guarded.guard().repair(accept=ACCEPTED)
        guarded.guard().repair(journals=folder / "journals", accept=["standby-power"])
        assert guarded.status().lock is Lock.open
        assert guarded.pg_ctl("start")[0] == 0
    finally:
        if knows:
            guarded.put_right()
            let(f"REVOKE pg_read_server_files FROM {ROLE}")


def test_what_a_standby_says_of_its_end_is_no_promise(guarded: Guarded) -> None:
    """Where its last restartpoint is of the last checkpoint, it flushes nothing when it stops."""
    guarded.arm()
    before = read_armed(data_directory(guarded.data))
    assert before is not None
    execute(guarded.primary, "CHECKPOINT")
    guarded.standby.wait_replayed(value(guarded.primary, "SELECT pg_current_wal_flush_lsn()"))
    execute(guarded.standby.cluster, "CHECKPOINT")
    guarded.standby.stop(clean=True)
    data = guarded.standby.cluster.data
    directory, conf = data_directory(data), data / "postgresql.conf"
    include = include_path(guarded.run_folder / "standby", before.system_identifier)
    armed = replace(before, data=os.path.realpath(data), config_file=str(conf),
                    include=str(include), boot_id="another",
                    inode=inode_of(directory))  # fmt: skip
    try:
        assert read_control(directory).state == "shut down in recovery"
        write_armed(directory, armed)
        write_line(directory, conf, include)
        assert admit(directory) is Lock.repair
        assert not include.exists(), "it stays shut"
        with pytest.raises(TargetError, match="lost power, and its pages may be torn"):
            Guard(data).disarm()
        with pytest.raises(TargetError, match="the cluster is a standby") as caught:
            Guard(data, guarded.conninfo(guarded.primary)).repair()
        assert "guard rejoin" in (caught.value.hint or "")
        # The kernel lived on: what was not flushed is, and then the line may go.
        write_armed(directory, replace(armed, boot_id=boot_id()))
        Guard(data).disarm()
        assert included(conf) is None
    finally:
        remove_line(directory, conf)
        forget_armed(directory)
        guarded.standby.start(AT_ONCE)


def base_backup(guarded: Guarded) -> Path:
    copy = guarded.data.parent / "copy"
    copy.mkdir(mode=0o700)
    user, at = postgres_user(), guarded.primary.connection()
    shutil.chown(copy, user.uid, user.gid)
    run([guarded.binaries.program("pg_basebackup"), "-h", at.host, "-p", str(at.port), "-U",
         at.user, "-D", copy, "-c", "fast", "-N"], user=user)  # fmt: skip
    return copy


def test_a_copy_that_is_repaired_opens_nothing_for_what_it_was_made_of(
    guarded: Guarded, folder: Path
) -> None:
    """Who copies torn data aside, and tries the repair there, has torn data still."""
    guarded.arm()
    change_without_images(guarded)
    guarded.cut_power()
    copy = guarded.data.with_name("copy")
    run(["cp", "-a", guarded.data, copy])
    try:
        guard = Guard(copy, guarded.conninfo(guarded.standby.cluster))
        assert guard.repair(journals=folder / "journals").outcome == "repaired"
        assert not guarded.include.exists()
        assert guarded.status().lock is Lock.repair
        assert guarded.pg_ctl("start")[0] != 0
        assert included(copy / "postgresql.conf") is None, "it may be started"
        assert (guard.status().armed, guard.status().wrong) == (None, ())
        words = ["-D", str(copy), "-o", "-c port=1", "-w", "-l", str(copy / "log"), "start"]
        run([guarded.binaries.program("pg_ctl"), *words], user=postgres_user())
        run([guarded.binaries.program("pg_ctl"), "-D", copy, "stop"], user=postgres_user())
    finally:
        shutil.rmtree(copy)


@pytest.mark.wide
def test_a_base_backup_at_the_same_path_of_another_machine_is_a_copy(guarded: Guarded) -> None:
    guarded.arm()
    copy, aside = base_backup(guarded), guarded.data.with_name("aside")
    guarded.primary.stop(clean=True)
    guarded.data.rename(aside)
    copy.rename(guarded.data)
    try:
        assert "is a copy of what was armed at" in Guard(guarded.data).status().wrong[0]
        with pytest.raises(TargetError, match="is a copy of what was armed at"):
            Guard(guarded.data).watch()
        Guard(guarded.data).disarm()
        assert included(guarded.data / "postgresql.conf") is None
        assert not (guarded.data / STATE).exists()
    finally:
        shutil.rmtree(guarded.data)
        aside.rename(guarded.data)
    assert guarded.status().lock is Lock.open
    assert "copy" not in " ".join(guarded.status().wrong)


@pytest.mark.wide
def test_a_base_backup_carries_the_line_until_it_is_disarmed(guarded: Guarded) -> None:
    guarded.arm()
    copy = base_backup(guarded)
    try:
        assert "It is a copy of" in Guard(copy).status().wrong[0]
        with pytest.raises(TargetError, match="is a copy of"):
            Guard(copy).watch()
        Guard(copy).disarm()
        assert included(copy / "postgresql.conf") is None
        assert included(guarded.data / "postgresql.conf") == guarded.include
        assert guarded.status().lock is Lock.open
    finally:
        shutil.rmtree(copy)


@pytest.mark.wide
def test_the_line_is_taken_out_of_a_copy_of_a_server_that_was_shut_down(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.arm()
    copy = guarded.data.with_name("copy")
    conf, programs, user = copy / "postgresql.conf", guarded.binaries.program, postgres_user()

    def start_before(directory: DataDirectory) -> None:
        words = ["-D", str(copy), "-o", "-c port=1", "-w", "-l", str(copy / "log"), "start"]
        run([programs("pg_ctl"), *words], user=user)
        release_copy(directory)

    try:
        kill_server(guarded.primary)
        run(["cp", "-a", guarded.data, copy])
        with pytest.raises(TargetError, match="neither a base backup nor of a server that was"):
            Guard(copy).disarm()
        assert included(conf) == guarded.include, "it is as it was"
        assert read_armed(data_directory(copy)) is not None
        shutil.rmtree(copy)

        guarded.primary.start([], recovers=True)
        guarded.primary.stop(clean=True)
        run(["cp", "-a", guarded.data, copy])
        Guard(copy).disarm()
        assert (included(conf), read_armed(data_directory(copy))) == (None, None)
        shutil.rmtree(copy)

        run(["cp", "-a", guarded.data, copy])
        monkeypatch.setattr(arming, "release_copy", start_before)
        with pytest.raises(TargetError, match="a server was started on") as caught:
            Guard(copy).disarm()
        assert "restart it" in (caught.value.hint or "")
        run([programs("pg_ctl"), "-D", copy, "stop"], user=user)
        assert (included(conf), read_armed(data_directory(copy))) == (None, None)
        assert guarded.status().lock is Lock.open, "the one that is armed stays so"
    finally:
        shutil.rmtree(copy)
