"""Several servers held together: names, what is asked of each, and which of them went away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import psycopg
import pytest

from pgdyno.model.connection import Connection
from pgdyno.model.errors import Interrupted, LostError, PgdynoError, StoppedError, TargetError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import Fixture
from pgdyno.model.system_errors import SystemFailure
from pgdyno.target.interface import on_server
from pgdyno.target.servers_target import ServersTarget, server_names


class Member:
    """A server that answers as it is told to."""

    def __init__(
        self, name: str, log: list[str], back: bool | Exception = True, *, sent_away: bool = False
    ) -> None:
        self.connection = Connection(name, 5432, "u", "d")
        self.log = log
        self.back = back
        self.was_sent_away = sent_away

    def came_back(self, _: float) -> bool:
        if isinstance(self.back, Exception):
            raise self.back
        return self.back

    def restore(self, ident: str, databases: int, _: str | None) -> Any:
        self.log.append(f"{self.connection.host} {ident} {databases}")
        return cast(Any, type("Done", (), {"method": "template database", "seconds": 1.5}))

    def close(self) -> None:
        self.log.append(f"{self.connection.host} closes")

    drop_half_fixture = close

    def stop(self) -> None:
        self.log.append(f"{self.connection.host} stops")
        if self.back is False:
            raise TargetError(f"{self.connection.host} is gone")


class Failing(Member):
    """One on which everything fails."""

    def __init__(self, name: str, failure: Callable[[], Exception]) -> None:
        super().__init__(name, [])
        self.failure = failure

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise self.failure()

    restore = apply = stop = close = configuration = rehearse = came_back = _fail
    drop_half_fixture = _fail


def target(*members: Member) -> ServersTarget:
    found = object.__new__(ServersTarget)
    found._members = cast(Any, members)
    found._names = server_names([one.connection for one in members])
    found._parts = {}
    return found


def test_servers_have_names_that_differ() -> None:
    a, b = Connection("a", 1, "u", "d"), Connection("b", 2, "u", "d")
    assert server_names([a, b]) == ["a:1", "b:2"]
    assert server_names([a, b, a]) == ["a:1 (1)", "b:2", "a:1 (3)"]


def test_each_is_given_its_own_part() -> None:
    log: list[str] = []
    both = target(Member("a", log), Member("b", log))
    parts = [Fixture(ident, FixtureShape(), 1, None, (), "copy", reused=False)
             for ident in ("left", "right")]  # fmt: skip

    joined = both.joined(parts)
    done = both.restore(joined.ident)

    assert (joined.ident, joined.others) == ("left", (parts[1],))
    assert log == ["a left 1", "b right 1"]
    assert done.seconds == 3.0


def test_all_are_stopped_though_one_is_gone() -> None:
    log: list[str] = []
    with pytest.raises(TargetError, match="a is gone"):
        target(Member("a", log, False), Member("b", log)).stop()
    assert log == ["a stops", "b stops"]


def test_servers_came_back_when_those_that_went_away_did() -> None:
    log: list[str] = []
    never = StoppedError("the server runs, but somebody ended this run's session there")

    assert target(Member("a", log, never), Member("b", log)).came_back(1.0)
    assert not target(Member("a", log, never), Member("b", log, False)).came_back(1.0)
    with pytest.raises(StoppedError, match="somebody ended"):
        target(Member("a", log, never), Member("b", log, never)).came_back(1.0)


def test_who_ends_a_session_on_one_of_several_servers_means_the_run() -> None:
    log: list[str] = []
    ended = Member("b", log, StoppedError("somebody ended it"), sent_away=True)

    for other in (True, StoppedError("this one never went away")):
        with pytest.raises(StoppedError, match="somebody ended it"):
            target(Member("a", log, other), ended).came_back(1.0)
    # One that was stopped and started again has ended all sessions with it.
    assert target(Member("a", log), Member("b", log, sent_away=True)).came_back(1.0)


@pytest.mark.parametrize(
    ("failure", "kind", "fact"),
    [
        (lambda: LostError("the server crashed", "Why?"), LostError, "the server crashed"),
        (lambda: psycopg.OperationalError("it is gone"), SystemFailure,
         "the server failed: it is gone"),
    ],
)  # fmt: skip
def test_what_fails_on_one_of_several_servers_says_on_which(
    failure: Callable[[], Exception], kind: type[PgdynoError], fact: str
) -> None:
    both = target(Failing("b", failure), Member("a", []))
    both._parts = {"left": ("left", "right")}

    for act in (lambda: both.restore("left"), lambda: both.apply([]), both.stop, both.close,
                both.configuration, lambda: list(both.rehearse([])), both.drop_half_fixture,
                lambda: both.came_back(1.0)):  # fmt: skip
        with pytest.raises(kind) as caught:
            act()
        assert type(caught.value) is kind
        assert caught.value.fact == str(caught.value) == f"server b:5432: {fact}"


def test_nothing_is_said_of_the_only_server_nor_of_ctrl_c() -> None:
    with pytest.raises(psycopg.OperationalError, match=r"^gone$"), on_server(""):
        raise psycopg.OperationalError("gone")
    with pytest.raises(Interrupted, match=r"^stopped$"), on_server("b:5432"):
        raise Interrupted("stopped")
