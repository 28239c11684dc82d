"""The daemon on pairs whose standby cannot serve any more, and is thrown away."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest

from pgdyno import Guard, GuardLimits
from tests.cluster.guarded import Guarded, execute, pair, stop

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
