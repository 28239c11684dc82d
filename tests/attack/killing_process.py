"""Run by `test_killed_run`: makes a fixture and a trial, and is killed at a step of root's.

A step is what changes something, of the events of `planting`, and the first look that follows: of
several looks in a row each finds what the one before found, so that a kill at the others shows
nothing new. Without a step (-1) it comes to its end and prints how many.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import Fixture
from pgdyno.model.settings import ServerFacts
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.own_target import OwnTarget
from tests.attack.planting import EVENTS
from tests.cluster.conftest import TARGETS

IDENT = "0123456789abcdef"
_LOOKS = {"os.listdir", "os.scandir"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_home, _stage, _step = sys.argv[1:]
_heard = 0
_has_changed = True  # something, since the last look


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    global _heard, _has_changed  # noqa: PLW0603 - a hook has no other place
    if event not in EVENTS:
        return
    looks = event in _LOOKS or (event == "open" and not arguments[2] & _WRITES)
    if _has_changed or not looks:
        _heard += 1
        if _heard == int(_step):
            os.kill(os.getpid(), signal.SIGKILL)
    _has_changed = not looks


def _work() -> None:
    user, plan = postgres_user(), TARGETS["embedded-18"]
    binaries = find_binaries(plan, user)
    sys.addaudithook(_hear)
    unasked = cast(ServerFacts, None)  # nothing here wants them
    target = OwnTarget(plan, binaries, unasked, user, Path(_home), 1 << 30, None, [_stage])
    try:
        if target.find_fixture(IDENT) is None:
            target.begin_fixture(IDENT)
            target.keep_fixture(Fixture(IDENT, FixtureShape(), 0, None, (), "", reused=False))
        target.restore(IDENT, folder=_stage)
        target.apply(())
        target.stop()
    finally:
        target.close()


_work()
print(_heard)
