"""The interlock on real servers: after a power cut nothing starts, after a mere crash everything.

A power cut is what it does to files in memory and to the kernel's boot id; pages are not torn here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno import Guard
from pgdyno.guard import arming
from pgdyno.guard.data_directory import DataDirectory, claim, data_directory
from pgdyno.guard.include_file import INCLUDE, include_path, read_pages, write_pages
from pgdyno.guard.interlock import (
    STATE,
    admit,
    included,
    read_armed,
    remove_line,
    write_armed,
    write_line,
)
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import Armed, Lock, Step
from pgdyno.shell import postgres_user, run
from tests.cluster.crashed_pair import torn_at
from tests.cluster.guarded import ACCEPTED, Guarded, execute, kill_server, killed, pair, value
from tests.cluster.test_storage import memory_disk
from tests.tally import survived

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


def configuration(guarded: Guarded) -> str:
    return (guarded.data / "postgresql.conf").read_text()


def test_armed_and_disarmed_it_is_as_it_was(guarded: Guarded) -> None:
    before = configuration(guarded)
    guarded.arm()

    armed = read_armed(data_directory(guarded.data))
    assert armed is not None
    assert armed.step is Step.armed
    assert "password" not in (guarded.data / STATE).read_text()
    assert (guarded.data / STATE).stat().st_mode & 0o777 == 0o600
    assert configuration(guarded).startswith(before)
    assert included(guarded.data / "postgresql.conf") == guarded.include
    assert guarded.full_pages() == "on", "arming turns nothing off"
    assert value(guarded.primary, "SELECT sourcefile FROM pg_settings"
                 " WHERE name = 'full_page_writes'") == str(guarded.include)  # fmt: skip
    status = guarded.status()
    assert status.code == 1, "nobody watches"
    assert "daemon does not run" in status.wrong[0]

    guarded.arm()  # again: nothing new
    assert configuration(guarded).count("include '/dev/shm") == 1
    Guard(guarded.data).disarm()
    assert configuration(guarded) == before
    assert not (guarded.data / STATE).exists()
    assert guarded.full_pages() == "on"
    assert guarded.status().armed is None


def test_after_a_power_cut_nothing_starts_it_and_its_message_says_what_to_do(
    guarded: Guarded,
) -> None:
    guarded.arm()
    include = guarded.include
    write_pages(data_directory(guarded.data), include, "off")
    guarded.cut_power()

    code, said = guarded.pg_ctl("start")
    assert code != 0
    assert f'could not open configuration file "{include}"' in said
    assert INCLUDE == "run-pgdyno-guard-repair-first.conf"
    user = postgres_user()
    for program, words in (("postgres", ["--single", "-D", str(guarded.data), "postgres"]),
                           ("postgres", ["-D", str(guarded.data)])):  # fmt: skip
        alone = run([guarded.binaries.program(program), *words], user=user, check=False)
        assert alone.code != 0
        assert INCLUDE in alone.stderr
    status = guarded.status()
    assert (status.lock, status.code, status.pages) == (Lock.repair, 1, None)
    assert f"Do not start the server: `pgdyno guard repair {guarded.data}` first" in status.wrong[0]
    told = {one.name: one for one in guarded.guard().check(ACCEPTED).refused}
    assert f"`pgdyno guard repair {guarded.data}` first" in told["interlock"].change
    assert told["interlock"].found == f"shut, {include} is gone: pages may be torn"
    assert told["primary-answers"].change == "Repair it before you start it: see interlock."
    assert "configuration-file" not in told, "it is known without the server"
    assert admit(data_directory(guarded.data)) is Lock.repair
    assert not include.exists(), "it stays shut"
    with pytest.raises(TargetError, match="lost power, and its pages may be torn"):
        Guard(guarded.data).disarm()
    assert guarded.pg_ctl("start")[0] != 0


def test_after_a_mere_crash_it_starts(guarded: Guarded) -> None:
    guarded.arm()
    kill_server(guarded.primary)
    assert guarded.pg_ctl("start")[0] == 0
    assert guarded.pg_ctl("stop")[0] == 0
    # The same where somebody emptied the folder, as a new container does: the kernel lived on.
    shutil.rmtree(guarded.run_folder / guarded.include.parent.name)
    assert guarded.pg_ctl("start")[0] != 0
    assert guarded.status().lock is Lock.same_boot
    directory = data_directory(guarded.data)
    armed = read_armed(directory)
    assert armed is not None
    with directory.opened() as repaired:  # which the daemon does not open under a repair's hands
        assert claim(repaired)
        assert admit(directory) is Lock.repair
    assert read_pages(directory, Path(armed.include)) is None
    assert admit(directory) is Lock.same_boot
    assert read_pages(directory, Path(armed.include)) == "on"
    assert guarded.pg_ctl("start")[0] == 0


def test_after_an_orderly_restart_of_the_machine_it_is_admitted(guarded: Guarded) -> None:
    guarded.arm()
    guarded.primary.stop(clean=True)
    guarded.forget_the_boot()
    assert guarded.pg_ctl("start")[0] != 0
    assert guarded.status().lock is Lock.clean
    directory = data_directory(guarded.data)
    assert admit(directory) is Lock.clean
    assert guarded.pg_ctl("start")[0] == 0
    now = read_armed(directory)
    assert now is not None
    assert now.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.wide
def test_what_overrides_it_is_not_left_behind(guarded: Guarded) -> None:
    guarded.arm()
    conf = guarded.data / "postgresql.conf"
    conf.write_text("full_page_writes = off\n" + conf.read_text())  # above our line: it decides
    execute(guarded.primary, "SELECT pg_reload_conf()")
    assert guarded.full_pages() == "on"
    try:
        with pytest.raises(TargetError, match="without the guard's line"):
            Guard(guarded.data).disarm()
        assert guarded.full_pages() == "on"
        assert included(conf) is not None, "it is guarded still"
        assert "Disarming was cut short" in guarded.status().wrong[0]
    finally:
        conf.write_text(conf.read_text().removeprefix("full_page_writes = off\n"))
    Guard(guarded.data).disarm()


@pytest.mark.wide
def test_a_line_that_somebody_took_out_is_named_and_put_back(guarded: Guarded) -> None:
    guarded.arm()
    whole = configuration(guarded)
    (guarded.data / "postgresql.conf").write_text(whole.replace("include '", "# include '"))
    assert "line of the interlock is gone" in guarded.status().wrong[0]
    assert [one.name for one in guarded.guard().check(ACCEPTED).refused] == ["interlock"]
    (guarded.data / "postgresql.conf").write_text(whole)


@pytest.mark.wide
def test_patroni_keeps_the_line_in_the_file_that_it_includes(guarded: Guarded) -> None:
    conf, base = guarded.data / "postgresql.conf", guarded.data / "postgresql.base.conf"
    before = conf.read_text()
    shutil.copy2(conf, base)
    shutil.chown(base, postgres_user().uid, postgres_user().gid)
    conf.write_text(
        "# Do not edit this file manually!\n# It will be overwritten by Patroni!\n"
        "include 'postgresql.base.conf'\n\nmax_connections = '100'\n"
    )
    try:
        guarded.arm()
        assert included(base) == guarded.include
        assert included(conf) is None
        Guard(guarded.data).disarm()
        assert base.read_text() == before
    finally:
        conf.write_text(before)
        base.unlink()


def test_what_is_undone_may_be_torn_again_and_does_not_start(
    guarded: Guarded, tmp_path: Path
) -> None:
    guarded.arm()
    write_pages(data_directory(guarded.data), guarded.include, "off")
    data_directory(guarded.data).reload()
    guarded.until_off()
    execute(guarded.primary, "CREATE TABLE undone AS SELECT i FROM generate_series(1, 20000) AS i;"
            "\nCHECKPOINT;\nUPDATE undone SET i = -i")  # fmt: skip
    guarded.standby.wait_replayed(value(guarded.primary, "SELECT pg_current_wal_flush_lsn()"))
    guarded.cut_power()
    assert torn_at(guarded.data)
    guard, journals = guarded.guard(), tmp_path / "journals"
    assert guard.repair(journals=journals).outcome == "repaired"
    assert guarded.status().lock is Lock.open

    guard.undo(journals=journals)
    status = guarded.status()
    assert (status.lock, status.code, status.pages) == (Lock.repair, 1, None)
    code, said = guarded.pg_ctl("start")
    assert code != 0
    assert INCLUDE in said
    let_in = admit(data_directory(guarded.data))
    assert let_in is Lock.repair, "the daemon does not let it start either"

    assert guard.repair(journals=journals).outcome == "repaired"
    guarded.primary.start([], recovers=True)
    assert value(guarded.primary, "SELECT sum(i) FROM undone") == str(-10_000 * 20_001)
    execute(guarded.primary, "DROP TABLE undone")


# -- killed at every step ------------------------------------------------------------------------


def assert_safe(guarded: Guarded, when: str) -> None:
    """Full pages are on; or the interlock stands, so that a power cut would be repaired."""
    assert guarded.full_pages() == "on", when
    status, line = guarded.status(), included(guarded.data / "postgresql.conf")
    if status.armed is None:
        assert line is None, when
        return
    assert status.armed.step is Step.armed or any("cut short" in one for one in status.wrong), when
    # Whatever was reached, the server can be started again while the machine runs.
    assert line is None or read_pages(data_directory(guarded.data), line) == "on", when


@pytest.mark.wide
@pytest.mark.parametrize("verb", ["arm", "disarm"])
def test_killed_at_any_step_it_is_safe_and_ends_when_it_is_run_again(
    guarded: Guarded, verb: str
) -> None:
    step = 1
    while True:
        if verb == "disarm":
            guarded.arm()
            write_pages(data_directory(guarded.data), guarded.include, "off")
            data_directory(guarded.data).reload()
            guarded.until_off()
        if not killed(guarded, verb, step):
            break
        when = f"{verb} killed at step {step}"
        survived("kills of arming or disarming")
        if verb == "arm" or guarded.full_pages() == "on":
            assert_safe(guarded, when)
        else:  # killed before full pages were on: the interlock has to stand
            assert included(guarded.data / "postgresql.conf") == guarded.include, when
            assert guarded.status().lock is Lock.open, when
        if verb == "arm":
            guarded.arm()
        Guard(guarded.data).disarm() if guarded.status().armed else None
        assert guarded.status().wrong == (), when
        step += 1
    assert step > 4, "it has steps"


def stopped_with_pages_off(guarded: Guarded) -> None:
    guarded.arm()
    write_pages(data_directory(guarded.data), guarded.include, "off")
    data_directory(guarded.data).reload()
    guarded.until_off()
    guarded.primary.stop(clean=True)


def test_a_server_that_starts_while_it_is_disarmed_has_to_follow(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the file a moment before full pages were on in it, and would keep them off."""
    stopped_with_pages_off(guarded)
    written, begun = write_armed, list[float]()

    def write(directory: DataDirectory, armed: Armed) -> None:
        if not begun:
            begun.append(guarded.primary.start([]))
            assert guarded.full_pages() == "off"
        written(directory, armed)

    monkeypatch.setattr(arming, "write_armed", write)
    Guard(guarded.data).disarm()
    assert begun
    assert guarded.full_pages() == "on"
    query = "SELECT full_page_writes FROM pg_control_checkpoint()"
    assert value(guarded.primary, query) == "True", "images protect every page"
    assert included(guarded.data / "postgresql.conf") is None
    assert guarded.status().armed is None


def test_no_server_starts_from_the_last_look_until_the_line_is_gone(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_with_pages_off(guarded)
    removed, let_in, tried = remove_line, admit, list[tuple[int, str]]()

    def remove(directory: DataDirectory, path: Path) -> None:
        assert let_in(directory) is Lock.repair, "nobody opens it meanwhile"
        tried.append(guarded.pg_ctl("start"))
        removed(directory, path)

    monkeypatch.setattr(arming, "remove_line", remove)
    Guard(guarded.data).disarm()
    ((code, said),) = tried
    assert code != 0
    assert INCLUDE in said
    guarded.primary.start([])
    assert guarded.full_pages() == "on"
    assert guarded.status().armed is None


@pytest.mark.long
def test_killed_while_the_server_is_stopped_it_ends_when_it_is_run_again(guarded: Guarded) -> None:
    step = 1
    while True:
        stopped_with_pages_off(guarded)
        if not killed(guarded, "disarm", step):
            break
        survived("kills of arming or disarming")
        assert guarded.status().lock is not Lock.repair, step
        if guarded.status().armed is not None:
            Guard(guarded.data).disarm()
        guarded.primary.start([])
        assert (guarded.status().wrong, guarded.full_pages()) == ((), "on"), step
        step += 1
    guarded.primary.start([])
    assert step > 4, "it has steps"


@pytest.mark.parametrize("checkpoint", [False, pytest.param(True, marks=pytest.mark.wide)])
def test_full_pages_are_complete_before_the_line_goes(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch, checkpoint: bool
) -> None:
    """Also where the last checkpoint began while they were on, and they were off since."""
    guarded.arm()
    write_pages(data_directory(guarded.data), guarded.include, "off")
    data_directory(guarded.data).reload()
    guarded.until_off()
    if checkpoint:
        execute(guarded.primary, "CHECKPOINT")
    execute(guarded.primary, "CREATE TABLE first_changed_without_an_image (i int)")
    began = value(guarded.primary, "SELECT full_page_writes FROM pg_control_checkpoint()")
    assert began == str(not checkpoint)
    lsn = value(guarded.primary, "SELECT pg_current_wal_insert_lsn()")
    since = f"SELECT full_page_writes AND redo_lsn >= '{lsn}' FROM pg_control_checkpoint()"
    seen: list[str] = []
    removed = remove_line

    def remove(directory: DataDirectory, path: Path) -> None:
        seen.append(value(guarded.primary, since))
        removed(directory, path)

    monkeypatch.setattr(arming, "remove_line", remove)
    Guard(guarded.data).disarm()
    assert seen == ["True"], "a checkpoint began since they are on"
    execute(guarded.primary, "DROP TABLE first_changed_without_an_image")


@pytest.mark.wide
def test_a_state_that_is_not_ours_is_refused(guarded: Guarded) -> None:
    guarded.arm()
    directory = data_directory(guarded.data)
    armed = read_armed(directory)
    assert armed is not None
    write_armed(directory, replace(armed, version=99))
    with pytest.raises(TargetError, match="is of version 99, known is 1"):
        guarded.status()
    state = guarded.data / STATE
    state.write_text("{}")
    with pytest.raises(TargetError, match="is not understood"):
        guarded.status()
    state.unlink()
    state.symlink_to("/etc/passwd")
    with pytest.raises(TargetError):
        guarded.status()
    state.unlink()
    assert "is gone: arm it again" in guarded.status().wrong[0]
    write_armed(directory, armed)
    write_line(directory, guarded.data / "postgresql.conf", Path(armed.include))
    assert os.stat(guarded.data / "postgresql.conf").st_uid == postgres_user().uid


@pytest.mark.wide
def test_the_commands_do_it_and_say_how_it_stands(guarded: Guarded) -> None:
    def command(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", "guard", *words], capture_output=True, text=True,
            check=False, cwd="/",
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    guarded.arm()
    Guard(guarded.data).disarm()
    data = str(guarded.data)
    standby, primary = (guarded.conninfo(one) for one in (guarded.standby.cluster, guarded.primary))
    pair_words = [data, "--standby", standby, "--primary", primary, "--run-folder",
                  str(guarded.run_folder)]  # fmt: skip
    code, said = command("arm", *pair_words)
    assert (code, guarded.status().armed) == (1, None), "nobody accepted that power is shared"
    assert "--accept separate-power" in said
    code, said = command("watch", data)
    assert code == 3
    assert "is not armed" in said
    code, said = command("arm", *pair_words, "--accept", "separate-power", "--lag-bytes", "1000000")
    assert code == 0, said
    armed = guarded.status().armed
    assert armed is not None
    assert (armed.limits.lag_bytes, armed.accepted) == (1_000_000, ("separate-power",))
    code, said = command("arm", data, "--accept", "standby-power", "--hold", "1")
    assert code == 0, said  # as the documentation has it, once a standby is known to be whole
    again = guarded.status().armed
    assert again is not None
    assert again.limits == replace(armed.limits, hold_s=1.0), "what nobody names stays"
    code, said = command("status", data, "--json")
    assert code == 1
    assert json.loads(said)["armed"]["step"] == "armed"
    code, said = command("status", data)
    assert code == 1
    assert "The daemon does not run" in said
    code, said = command("unit", data)
    assert code == 0
    assert "[Service]" in said
    code, said = command("disarm", data)
    assert code == 0, said
    assert command("status", data)[0] == 0


@pytest.mark.wide
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_with_no_room_for_another_file_full_pages_still_go_on(
    guarded: Guarded, tmp_path: Path
) -> None:
    with memory_disk(tmp_path / "disk", 1) as disk:
        directory, include = data_directory(guarded.data), include_path(disk, "7")
        write_pages(directory, include, "on", make=True)
        write_pages(directory, include, "off")
        with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(b"x" * 4096)
        write_pages(directory, include, "on")
        assert read_pages(directory, include) == "on"
        with pytest.raises(TargetError, match="no space left"):
            write_pages(directory, include, "off")
        assert sorted(one.name for one in include.parent.iterdir()) == [INCLUDE]
