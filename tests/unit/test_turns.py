"""Who waits to have the machine alone is passed by nobody."""

from __future__ import annotations

import fcntl
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.turns import turn
from tests.waiting import DEADLINE_S, until


def is_held(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def test_who_wants_it_alone_holds_up_those_that_come_later(tmp_path: Path) -> None:
    lock, turnstile = tmp_path / "lock", tmp_path / "turnstile"
    lock.mkdir()
    turnstile.mkdir()
    taking = partial(turn, lock=lock, turnstile=turnstile)
    order: list[str] = []

    def takes(name: str, alone: bool) -> None:
        with taking(alone=alone):
            order.append(name)

    first = threading.Thread(target=takes, args=("alone", True))
    later = threading.Thread(target=takes, args=("shared", False))
    with taking(alone=False), taking(alone=False):
        assert not is_held(turnstile)
        first.start()
        until(lambda: is_held(turnstile), "it waits in the turnstile")
        later.start()
        assert order == []
    first.join(DEADLINE_S)
    later.join(DEADLINE_S)

    assert order == ["alone", "shared"]
    assert not is_held(lock)
    assert not is_held(turnstile)


def test_it_is_free_again_after_a_failure(tmp_path: Path) -> None:
    lock, turnstile = tmp_path, tmp_path.parent

    def fails() -> None:
        with turn(alone=True, lock=lock, turnstile=turnstile):
            assert is_held(lock)
            assert not is_held(turnstile)
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        fails()
    assert not is_held(lock)
