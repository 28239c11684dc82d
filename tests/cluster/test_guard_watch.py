"""The daemon on real pairs: full pages off while the standby qualifies, on with the reason else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pgdyno import Guard, GuardLimits
from pgdyno.guard.data_directory import data_directory
from pgdyno.guard.deadman import MODULE
from pgdyno.guard.include_file import write_pages
from pgdyno.guard.interlock import STATE
from pgdyno.model.guard import Heartbeat
from pgdyno.target.cluster import Cluster
from tests.cluster.guarded import (
    ACCEPTED,
    AT_ONCE,
    LIMITS,
    ROLE,
    Guarded,
    execute,
    killed,
    killed_standby,
    pair,
    stop,
    value,
)
from tests.tally import survived
from tests.waiting import until

pytestmark = pytest.mark.cluster
VERSIONS = ("embedded-18", pytest.param("debian-15", marks=pytest.mark.long))
SECRET = "a-secret-of-the-tests"
PATIENT = GuardLimits(silence_s=3.0, hold_s=0.5)


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    def prepare(cluster: Cluster) -> None:  # so that a restart of a server is told from a cut
        execute(cluster, f"GRANT pg_read_server_files TO {ROLE}")

    with pair(request.param, prepare) as found:
        yield found


@pytest.fixture
def guarded(shared: Guarded) -> Iterator[Guarded]:
    """A pair that is armed, with short limits, and not watched yet."""
    shared.arm(PATIENT)
    try:
        yield shared
    finally:
        shared.put_right()


def deadman_of(daemon: subprocess.Popen[str]) -> psutil.Process:
    """Its second process."""
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = [one for one in psutil.Process(daemon.pid).children() if MODULE in one.cmdline()]
        return bool(found)

    until(look, "the watchdog runs")
    return found[0]


def test_off_while_all_is_well_and_on_before_it_ends(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    until(lambda: (found := guarded.status()).code == 0 and found.pages == "off", "all is well")
    status = guarded.status()
    assert status.daemon_runs
    assert status.heartbeat is not None
    assert status.heartbeat.pid == daemon.pid
    until(lambda: "pgdyno_guard_full_pages_off 1\n" in guarded.metrics(), "its next look says so")
    metrics = guarded.metrics()
    assert 'pgdyno_guard_condition{name="streaming"} 1' in metrics
    assert metrics.endswith("# EOF\n")
    assert (guarded.include.parent / "heartbeat.json").stat().st_mode & 0o777 == 0o600

    second = guarded.watching()
    assert "another daemon watches" in second.communicate()[0]
    assert second.returncode == 3

    said = stop(daemon)
    assert daemon.returncode == 0, said
    assert "full pages are off: all conditions hold" in said
    assert "full pages are on: the daemon was stopped" in said
    assert guarded.full_pages() == "on"
    assert "daemon does not run" in guarded.status().wrong[0]


def paused(guarded: Guarded) -> Callable[[], None]:
    execute(guarded.standby.cluster, "SELECT pg_wal_replay_pause()")
    return lambda: execute(guarded.standby.cluster, "SELECT pg_wal_replay_resume()")


def unlogged(guarded: Guarded) -> Callable[[], None]:
    execute(guarded.primary, "CREATE UNLOGGED TABLE fresh (i int)")
    return lambda: execute(guarded.primary, "DROP TABLE fresh")


def without_slot(guarded: Guarded) -> Callable[[], None]:
    standby = guarded.standby.cluster
    execute(standby, "ALTER SYSTEM SET primary_slot_name = '';\nSELECT pg_reload_conf()")
    return lambda: execute(
        standby, "ALTER SYSTEM RESET primary_slot_name;\nSELECT pg_reload_conf()"
    )


def dropped_slot(guarded: Guarded) -> Callable[[], None]:
    name = guarded.standby.slot
    execute(
        guarded.primary,
        f"DO $$ BEGIN LOOP BEGIN"
        f" PERFORM pg_terminate_backend(active_pid) FROM pg_replication_slots"
        f" WHERE slot_name = '{name}';"
        f" PERFORM pg_drop_replication_slot('{name}'); RETURN;"
        f" EXCEPTION WHEN object_in_use THEN NULL; END; END LOOP; END $$",
    )
    return lambda: execute(
        guarded.primary, f"SELECT pg_create_physical_replication_slot('{name}', true)"
    )


def without_line(guarded: Guarded) -> Callable[[], None]:
    conf = guarded.data / "postgresql.conf"
    whole = conf.read_text()
    conf.write_text(whole.replace("include '", "# include '"))

    def back() -> None:
        conf.write_text(whole)
        data_directory(guarded.data).reload()

    return back


REASONS = {
    "replay": paused, "standby-answers": killed_standby, "slot": without_slot,
    "interlock": without_line, "slot: the standby uses none": dropped_slot,
}  # fmt: skip


@pytest.mark.parametrize(
    "reason", ["standby-answers", *(pytest.param(one, marks=pytest.mark.wide)
                                    for one in REASONS if one != "standby-answers")]
)  # fmt: skip
def test_on_with_the_reason_and_off_when_it_is_gone(guarded: Guarded, reason: str) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    lsn = value(guarded.primary, "SELECT pg_current_wal_insert_lsn()")
    undo = REASONS[reason](guarded)
    try:
        guarded.until_on(reason)
        assert guarded.status().code in (8, 1)
        until(lambda: (beat := guarded.status().heartbeat) is not None and beat.complete,
              "images protect every page, by a checkpoint of the daemon's")  # fmt: skip
        since = f"SELECT full_page_writes AND redo_lsn >= '{lsn}' FROM pg_control_checkpoint()"
        assert value(guarded.primary, since) == "True"
    finally:
        undo()
    guarded.until_off()
    stop(daemon)


@pytest.mark.wide
def test_an_unlogged_table_that_is_new_is_found(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    undo = unlogged(guarded)
    guarded.until_on("unlogged")
    undo()
    stop(daemon)


@pytest.mark.wide
def test_a_server_in_the_place_of_the_standby_turns_them_on(guarded: Guarded) -> None:
    with pair("embedded-18") as other:
        ours = Path(guarded.standby.cluster.connection().host)
        daemon = guarded.watching()
        guarded.until_off()
        guarded.standby.stop(clean=True)
        aside = ours.with_name("aside")
        ours.rename(aside)
        ours.symlink_to(other.standby.cluster.connection().host)
        try:
            guarded.until_on("same-system")
        finally:
            ours.unlink()
            aside.rename(ours)
            other.standby.stop(clean=True)  # in which the daemon still has a session
            guarded.standby.start(AT_ONCE)
        guarded.until_off()
        stop(daemon)


_JUMPING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) { static long calls; return (++calls % 3 - 1) * 86400; }
int clock_gettime(clockid_t which, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(which, at);
    if (which == CLOCK_REALTIME) at->tv_sec += jump();
    return code;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def heartbeat(guarded: Guarded) -> Heartbeat:
    found = guarded.status().heartbeat
    assert found is not None
    return found


@pytest.mark.wide
def test_clocks_that_jump_change_nothing(guarded: Guarded, tmp_path: Path) -> None:
    source, library = tmp_path / "jumping.c", tmp_path / "jumping.so"
    source.write_text(_JUMPING)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    jumping = os.environ | {"LD_PRELOAD": str(library)}
    told = subprocess.run(
        [sys.executable, "-c", "import time; print([time.time() // 86400 for _ in range(3)])"],
        env=jumping, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert len(set(told.strip("[]\n").split(", "))) == 3, "the clock of a process jumps by days"

    guarded.arm(LIMITS)  # a busy machine is silent for longer than the other tests allow
    daemon = guarded.watching(jumping)
    guarded.until_off()
    until(lambda: heartbeat(guarded).pages == "off", "its next look says so")
    seen_s: set[float] = set()

    def beats() -> bool:
        beat = heartbeat(guarded)
        assert (beat.pages, beat.turns, beat.watchdog_turns) == ("off", 0, 0)
        seen_s.add(beat.at_s)
        return len(seen_s) > 8  # looks that are a second apart

    until(beats, "it goes on")
    undo = paused(guarded)
    guarded.until_on("replay")
    undo()
    guarded.until_off()
    assert "no sign of life" not in stop(daemon)


@pytest.mark.wide
def test_lag_turns_them_on(guarded: Guarded) -> None:
    guarded.arm(GuardLimits(lag_bytes=1 << 20, silence_s=PATIENT.silence_s, hold_s=PATIENT.hold_s))
    daemon = guarded.watching()
    guarded.until_off()
    # Stopped, not paused: it receives and replays nothing, and says nothing either.
    startup = next(
        one for one in psutil.Process(guarded.standby.cluster.pid).children()
        if "startup" in " ".join(one.cmdline())
    )  # fmt: skip
    startup.suspend()
    try:
        execute(guarded.primary, "CREATE TABLE load AS SELECT generate_series(1, 200000) AS i")
        guarded.until_on("lag")
    finally:
        startup.resume()
        execute(guarded.primary, "DROP TABLE load")
    guarded.until_off()
    stop(daemon)


@pytest.mark.wide
def test_a_standby_that_hangs_is_one_that_does_not_answer(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    processes = psutil.Process(guarded.standby.cluster.pid)
    stopped = [processes, *processes.children()]
    for one in stopped:
        one.suspend()
    try:
        guarded.until_on("standby-answers")
        assert daemon.poll() is None
    finally:
        for one in reversed(stopped):
            one.resume()
    guarded.until_off()
    stop(daemon)


@pytest.mark.parametrize("name", ["embedded-18", pytest.param("debian-15", marks=pytest.mark.long)])
@pytest.mark.wide
def test_a_promoted_standby_turns_them_on_for_good(name: str) -> None:
    with pair(name) as apart:
        apart.arm(PATIENT)
        daemon = apart.watching()
        apart.until_off()
        execute(apart.standby.cluster, "SELECT pg_promote()")
        apart.until_on("standby-role")
        stop(daemon)
        Guard(apart.data).disarm()


def test_killed_the_watchdog_turns_them_on(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    watchdog = deadman_of(daemon)
    daemon.kill()
    daemon.wait()
    until(lambda: guarded.full_pages() == "on", "full pages are on")
    until(lambda: not watchdog.is_running() or watchdog.status() == "zombie", "it ends as well")
    status = guarded.status()
    assert (status.code, status.daemon_runs) == (1, False)
    again = guarded.watching()
    guarded.until_off()
    stop(again)


@pytest.mark.wide
def test_hung_the_watchdog_turns_them_on_and_the_daemon_notices(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        until(lambda: guarded.full_pages() == "on", "full pages are on")
        until(lambda: "no sign of life" in " ".join(guarded.status().wrong), "status names it")
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    guarded.until_off()
    beat = heartbeat(guarded)  # a busy machine may have been silent once more
    assert beat.turns >= beat.watchdog_turns >= 1
    stop(daemon)


@pytest.mark.wide
def test_without_its_watchdog_the_daemon_turns_them_on_and_has_another(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    first = deadman_of(daemon)
    first.kill()
    until(lambda: guarded.full_pages() == "on", "full pages are on")
    guarded.until_off()
    assert deadman_of(daemon).pid != first.pid
    stop(daemon)


@pytest.mark.wide
def test_with_both_killed_what_systemd_runs_turns_them_on(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    watchdog = deadman_of(daemon)
    watchdog.suspend()
    daemon.kill()
    daemon.wait()
    watchdog.kill()
    status = guarded.status()
    assert (status.pages, status.code) == ("off", 1)
    assert "off, and nobody watches" in status.wrong[0]
    words = [line for line in Guard(guarded.data).unit().splitlines() if "ExecStopPost=" in line]
    subprocess.run(words[0].removeprefix("ExecStopPost=").split(" "), stdin=subprocess.DEVNULL,
                   check=True, cwd="/")  # fmt: skip
    until(lambda: guarded.full_pages() == "on", "full pages are on")


def test_disarming_ends_the_daemon(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    Guard(guarded.data).disarm()
    said = daemon.communicate()[0]
    assert daemon.returncode == 0, said
    assert "is being disarmed" in said
    assert guarded.full_pages() == "on"


@pytest.mark.wide
def test_after_a_power_cut_it_waits_for_a_repair(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    daemon.kill()
    daemon.wait()
    guarded.cut_power()
    again = guarded.watching()
    until(lambda: guarded.run_folder.joinpath(
        guarded.include.parent.name, "heartbeat.json").exists(), "it beats")  # fmt: skip
    assert guarded.status().lock.value == "repair"
    assert guarded.pg_ctl("start")[0] != 0
    said = stop(again)
    assert f"Do not start the server: `pgdyno guard repair {guarded.data}` first" in said
    assert "full pages are" not in said.replace("the daemon was stopped", "")


@pytest.mark.long
def test_killed_at_each_step_it_leaves_them_on(guarded: Guarded) -> None:
    for step in range(1, 25):
        assert killed(guarded, "watch", step)
        until(lambda: guarded.full_pages() == "on", f"full pages are on after a kill at {step}")
        until(lambda: guarded.status().pages == "on", f"and stay so after a kill at {step}")
        survived("kills of the guard's daemon")


@pytest.mark.long
def test_killed_at_any_moment_it_leaves_them_on(guarded: Guarded) -> None:
    for attempt in range(20):
        daemon = guarded.watching()
        if attempt % 2:
            guarded.until_off()
        time.sleep(attempt * 0.05)  # no wait for anything: another moment each time
        daemon.kill()
        daemon.wait()
        until(lambda: guarded.full_pages() == "on", f"full pages are on after kill {attempt}")
        survived("kills of the guard's daemon")


def test_the_unit_has_no_password_and_all_it_needs(guarded: Guarded) -> None:
    text = Guard(guarded.data, "host=x password=secret").unit("postgresql@18-main.service")
    assert "secret" not in text
    for line in ("Type=notify", "WatchdogSec=30", "Before=postgresql@18-main.service",
                 "Restart=always", "KillMode=mixed", f"guard watch {guarded.data}"):  # fmt: skip
        assert line in text, line
    assert "RuntimeDirectory" not in text, "the folder is another one here"


@pytest.mark.wide
def test_what_overrides_the_file_is_named(guarded: Guarded) -> None:
    daemon = guarded.watching()
    guarded.until_off()
    execute(guarded.primary, "ALTER SYSTEM SET full_page_writes = off;\nSELECT pg_reload_conf()")
    try:
        until(lambda: any("full-page-writes" in one for one in guarded.status().heartbeat.reasons),
              "it is named")  # fmt: skip
        assert guarded.status().pages == "on", "as far as the guard goes"
    finally:
        execute(guarded.primary, "ALTER SYSTEM RESET full_page_writes;\nSELECT pg_reload_conf()")
    guarded.until_off()
    stop(daemon)


@pytest.mark.wide
def test_a_stranger_cannot_reach_the_files(guarded: Guarded) -> None:
    folder = guarded.include.parent
    assert folder.stat().st_mode & 0o077 == 0
    write_pages(data_directory(guarded.data), guarded.include, "on")
    assert guarded.include.stat().st_mode & 0o777 == 0o600
    done = subprocess.run(
        [sys.executable, "-m", MODULE, str(guarded.data), str(Path("/dev/shm/none/1/x.conf")), "1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.wide
def test_a_password_is_kept_nowhere_and_found_where_libpq_looks(tmp_path: Path) -> None:
    def prepare(cluster: Cluster) -> None:
        execute(cluster, f"ALTER ROLE {ROLE} PASSWORD '{SECRET}'")

    with pair("embedded-18", prepare, "tcp") as apart:
        port = apart.primary.connection().port
        at = f"host=127.0.0.1 port={port} user={ROLE} dbname=postgres"
        guard = apart.guard(PATIENT, primary=f"{at} password={SECRET}")
        until(lambda: guard.arm(ACCEPTED).allowed, "it is armed")
        assert SECRET not in (apart.data / STATE).read_text() + guard.unit()

        without = apart.watching()
        until(lambda: any("no password supplied" in one
                          for one in getattr(apart.status().heartbeat, "reasons", ())),
              "it may not enter without")  # fmt: skip
        said = stop(without)
        passwords = tmp_path / "pgpass"
        passwords.write_text(f"127.0.0.1:{port}:postgres:{ROLE}:{SECRET}\n"
                             f"127.0.0.1:{port}:template1:{ROLE}:{SECRET}\n")  # fmt: skip
        passwords.chmod(0o600)
        daemon = apart.watching(os.environ | {"PGPASSFILE": str(passwords)})
        apart.until_off()
        said += stop(daemon)
        files = [one for one in apart.run_folder.rglob("*") if one.is_file()]
        assert SECRET not in said + "".join(one.read_text() for one in files)
