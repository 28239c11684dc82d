"""When a disaster strikes a load: in its window, however long connecting takes, or not at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from pgdyno.drills import load
from pgdyno.drills.disasters import named
from pgdyno.drills.load import Strike, _require_struck, _Struck, _struck, _Window
from pgdyno.model.errors import DriveError
from pgdyno.model.progress import DriveProgress, Event
from tests.waiting import until

NOBODY: Any = None
(KILLS,) = named(("kill-backend",))


def test_nothing_strikes_before_the_window_is_open() -> None:
    heard: list[Event] = []
    window, over = _Window(heard.append), threading.Event()
    connecting, opened = DriveProgress("connect", 2.0), DriveProgress("window", 1.9)
    window.hear(connecting)
    struck: list[bool] = []
    waiting = threading.Thread(target=lambda: struck.append(window.waited(1.9, over)))
    waiting.start()
    time.sleep(0.3)
    assert struck == [], "though more than its share of two seconds may have gone"

    window.hear(opened)
    waiting.join()

    assert struck == [True]
    assert heard == [connecting, opened]


def test_a_load_that_is_over_before_is_struck_no_more() -> None:
    window, over = _Window(lambda _: None), threading.Event()
    over.set()
    assert not window.waited(0.0, over), "it never opened"
    window.hear(DriveProgress("window", 3600.0))
    assert not window.waited(0.0, over), "it ended early"


@pytest.mark.parametrize("error", [ProcessLookupError(3, "No such process"), ValueError("?")])
def test_whatever_keeps_a_disaster_from_striking_is_raised(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(load, "kill", fails)
    window = _Window(lambda _: None)
    window.hear(DriveProgress("window", 1.0))

    with (
        pytest.raises(type(error)) as raised,
        _struck(NOBODY, NOBODY, None, Strike(KILLS, 0.0), 1.0, window) as struck,
    ):
        until(lambda: struck.at_ns is not None, "the disaster")
    assert raised.value is error


@pytest.mark.parametrize("at_ns", [None, 21])
@pytest.mark.parametrize("error", ["connection refused", None])
def test_a_load_that_its_disaster_did_not_strike_is_no_proof(
    at_ns: int | None, error: str | None
) -> None:
    wanted = "the load ended before disaster kill-backend struck it"
    with pytest.raises(DriveError) as raised:
        _require_struck(KILLS, _Struck(at_ns), 20, error)
    assert raised.value.fact == (f"{wanted}: {error}" if error else wanted)
    _require_struck(KILLS, _Struck(20), 20, "the server ended")


class Server:
    """One that was struck: whether its postmaster has ended, and what its commits do."""

    def __init__(self, down_after: int, waits: bool | None) -> None:
        self.looks, self.down_after, self.waits = 0, down_after, waits
        self.connection, self.postmaster_pid = None, 7

    @property
    def is_down(self) -> bool:
        self.looks += 1
        return self.looks > self.down_after

    @contextmanager
    def session(self, _: object) -> Iterator[Any]:
        if self.waits is None:
            raise psycopg.OperationalError("the database system is starting up")
        yield SimpleNamespace(
            execute=lambda _: SimpleNamespace(fetchone=lambda: (self.waits,)),
        )


@pytest.mark.parametrize(
    ("server", "down"),
    [
        (Server(0, None), "ended"),
        (Server(2, None), "ended"),
        (Server(1 << 30, None), "hangs"),
        (Server(1 << 30, True), "waits"),
        (Server(1 << 30, False), None),
    ],
)
def test_in_what_way_a_server_stays_down(
    server: Any, down: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose postmaster runs, and lets nobody in, has neither come back nor ended."""
    monkeypatch.setattr(load, "BACK_S", 0.5)
    monkeypatch.setattr(load, "own_session", server.session)
    for recovers in (False, True):
        monkeypatch.setattr(load, "recovers", lambda _, found=recovers: found)
        server.looks = 0
        found = load._down(server, server)
        assert found == ("recovers" if recovers and down == "hangs" else down)
