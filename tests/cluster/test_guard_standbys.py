"""The daemon on pairs whose standby cannot serve any more, or another one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest

from pgdyno import Guard, GuardLimits
from pgdyno.shell import postgres_user
from pgdyno.target.cluster import Cluster
from pgdyno.target.standby import Standby
from tests.cluster.guarded import ACCEPTED, AT_ONCE, ROLE, Guarded, execute, pair, stop
from tests.waiting import until

pytestmark = pytest.mark.cluster
PATIENT = GuardLimits(silence_s=3.0, hold_s=0.5)


def lost_wal(guarded: Guarded) -> Callable[[], None]:
    """The slot keeps less than the standby lacks: it stands still, and the primary goes on."""
    receiver = next(
        one for one in psutil.Process(guarded.standby.cluster.pid).children()
        if "walreceiver" in " ".join(one.cmdline())
    )  # fmt: skip
    receiver.suspend()
    execute(
        guarded.primary,
        "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB';\nSELECT pg_reload_conf();\n"
        + "SELECT pg_switch_wal();\nCREATE TABLE more AS SELECT 1;\nDROP TABLE more;\n" * 4,
    )

    def back() -> None:
        receiver.resume()
        execute(
            guarded.primary,
            "ALTER SYSTEM RESET max_slot_wal_keep_size;\nSELECT pg_reload_conf()",
        )

    return back


@pytest.mark.wide
def test_a_slot_that_keeps_too_little_turns_them_on() -> None:
    with pair("embedded-18") as apart:  # its standby may not be able to go on after it
        apart.arm(PATIENT)
        daemon = apart.watching()
        apart.until_off()
        undo = lost_wal(apart)
        apart.until_on("keeps WAL, status unreserved")
        undo()
        stop(daemon)


@pytest.mark.wide
def test_a_standby_of_another_timeline_turns_them_on() -> None:
    with pair("embedded-18") as apart:
        apart.arm(PATIENT)
        daemon = apart.watching()
        apart.until_off()
        standby = apart.standby.cluster
        execute(standby, "SELECT pg_promote()")
        apart.until_on("standby-role")
        standby.stop(clean=True)
        (standby.data / "standby.signal").touch()
        standby.start([], recovers=True)
        apart.until_on("same-timeline: 2")
        stop(daemon)
        Guard(apart.data).disarm()


@pytest.mark.wide
def test_armed_with_another_standby_it_watches_that_one() -> None:
    def prepare(cluster: Cluster) -> None:  # so that a restart of a server is told from a cut
        execute(cluster, f"GRANT pg_read_server_files TO {ROLE}")

    with pair("embedded-18", prepare) as apart:
        second = Standby(apart.primary, apart.binaries, postgres_user(), "second")
        try:
            second.start(AT_ONCE)
            apart.arm()
            daemon = apart.watching()
            apart.until_off()
            another = replace(apart, standby=second).guard()
            until(lambda: another.arm(ACCEPTED).allowed, "it is armed")
            apart.standby.stop(clean=True)  # nobody asks it any more
            second.stop(clean=True)
            apart.until_on("standby")
            second.start(AT_ONCE)
            apart.until_off()
            stop(daemon)
        finally:
            second.close()
