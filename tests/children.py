"""Processes that a test starts: none of them outlives its test, also when that one fails.

A child that is left behind fails tests that come later, and those then say nothing of the cause.
"""

from __future__ import annotations

import subprocess
from typing import Any

from tests.waiting import DEADLINE_S

ENDS_S = DEADLINE_S
_started: list[subprocess.Popen[Any]] = []


def started(*args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen`; what still runs when the test ends is killed."""
    process = subprocess.Popen(*args, **kwargs)
    _started.append(process)
    return process


def end_all() -> None:
    """Kill what still runs, and close what was read of it; called after each test."""
    while _started:
        process = _started.pop()
        if process.poll() is None:
            process.kill()
        process.wait(ENDS_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
