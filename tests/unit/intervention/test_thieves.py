"""CPU time is taken only while it is asked for, and nobody goes on taking it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from pgdyno.intervention.thieves import refusal, thieves
from pgdyno.model.errors import TargetError
from tests.children import started
from tests.waiting import until

REFUSED = refusal()
pytestmark = pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED))
HOLDER = """
import sys, time
from pgdyno.intervention.thieves import thieves
with thieves() as found:
    found.turn(True)
    print(*(one.pid for one in found.processes), flush=True)
    time.sleep(3600)
"""


def test_a_share_of_every_cpu_is_taken_and_then_no_more() -> None:
    with thieves() as found:
        assert len(found.processes) == len(os.sched_getaffinity(0))
        rested = found.dose()
        assert rested is not None
        assert rested.added_ns == 0

        found.turn(True)
        until(lambda: (found.dose() or rested).added_ns > 20_000_000, "time is taken")
        found.turn(False)
        taken = found.dose()
        time.sleep(0.05)  # in which it would take more
        again = found.dose()

        assert taken is not None
        assert again is not None
        assert again.added_ns == taken.added_ns
        assert again.spent_ns > taken.spent_ns
        assert taken.factor is not None
        assert taken.factor > 1
        pids = [one.pid for one in found.processes]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_it_never_takes_more_than_its_share() -> None:
    with thieves() as found:
        before = found.dose()
        found.turn(True)
        until(lambda: (found.dose() or before).added_ns > 20_000_000, "time is taken")
        after = found.dose()
    assert before is not None
    assert after is not None
    spent = after.spent_ns - before.spent_ns
    assert after.added_ns <= 0.25 * spent, "a fifth was asked for, and slices end by the clock"


def test_they_end_with_whoever_started_them() -> None:
    holder = started([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    pids = [int(word) for word in holder.stdout.readline().split()]
    assert pids
    holder.send_signal(signal.SIGKILL)
    until(lambda: not any(psutil.pid_exists(pid) for pid in pids), "thieves end")


def test_one_that_ended_is_an_error() -> None:
    with thieves() as found:
        found.processes[0].kill()
        with pytest.raises(TargetError, match="what takes CPU time ended with code -9"):
            found.turn(True)


def test_without_the_right_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", forbidden)
    assert "needs a real-time priority" in str(refusal())
