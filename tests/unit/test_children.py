"""No child of a test outlives it."""

from __future__ import annotations

import subprocess

from tests import children


def test_a_child_that_still_runs_is_ended_and_what_is_read_of_it_closed() -> None:
    running = children.started(["sleep", "600"], stdout=subprocess.PIPE)
    ended = children.started(["true"])
    ended.wait(children.ENDS_S)

    children.end_all()

    assert running.returncode == -9
    assert ended.returncode == 0
    assert running.stdout.closed
