"""Samplers of a server that disturbs them: lost sessions, locks, and how long they told nothing."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from pgdyno.model.run import SamplerCost
from pgdyno.model.sampler_gaps import GAP_S, gaps_of
from pgdyno.sample import recorder as recording
from pgdyno.sample.account import Account
from pgdyno.sample.link import Link
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Column, Label, Sampler, Snapshot, Tally
from pgdyno.sample.timetable import Timetable

GONE = psycopg.OperationalError("server closed the connection\n\tThis probably means much.")
LOCKED = psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")


class Server:
    """Answers, or fails with what `fails` has; a session of it is a number."""

    def __init__(self) -> None:
        self.fails: dict[str, Exception] = {}
        self.session = 1
        self.breaks = self.is_lost = self.refuses = False

    def again(self) -> list[Any]:
        if self.refuses:
            raise psycopg.OperationalError("connection refused")
        self.session, self.is_lost = self.session + 1, False
        return self.found()

    def cut(self) -> None:
        self.is_lost = True

    def found(self) -> list[Any]:
        session = self.session

        def ask(name: str) -> float:
            if name in self.fails:
                raise self.fails[name]
            self.is_lost |= self.breaks
            self.breaks = False
            if self.is_lost or session != self.session:
                raise GONE
            return float(session)

        columns = (Label("t"), Column("c", "B", "gauge"))
        return [
            Sampler("a", (Column("a", "1", "gauge"),), lambda: {"a": ask("a")}),
            Sampler("b", (Column("b", "1", "gauge"),), lambda: {"b": ask("b")}),
            Tally("seen", ("t",), lambda: [(str(ask("seen")),)]),
            Snapshot("c", columns, lambda: [{"t": "t", "c": ask("c")}]),
        ]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def recorder(server: Server, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.setattr(recording, "RETRY_S", 0.0)
    return Recorder(server.found(), link=cast(Link, server))


def values(recorder: Recorder) -> dict[str, list[float]]:
    return {one.name: one.values.tolist() for one in recorder.series()}


def costs(recorder: Recorder) -> dict[str, SamplerCost]:
    return {one.name: one for one in recorder.telemetry().samplers}


def test_a_lost_session_is_opened_anew_and_the_gap_is_told(
    server: Server, recorder: Recorder
) -> None:
    recorder.take()
    server.breaks = server.refuses = True
    recorder.take()
    recorder.take()
    assert costs(recorder)["a"].gap_s == 0, "it goes on"
    server.refuses = False
    recorder.take()

    assert values(recorder) == {"a": [1.0, 2.0], "b": [1.0, 2.0]}
    told = costs(recorder)
    assert [told[name].failure for name in ("a", "b", "seen")] == [None] * 3
    assert told["a"].gap_s > 0
    assert told["a"].gap_reason == told["b"].gap_reason == "server closed the connection"


def test_a_lock_stops_one_sampler_for_as_long_as_it_is_held(
    server: Server, recorder: Recorder
) -> None:
    recorder.take()
    server.fails["a"] = LOCKED
    recorder.take()
    del server.fails["a"]
    recorder.take()

    assert values(recorder) == {"a": [1.0, 1.0], "b": [1.0, 1.0, 1.0]}
    told = costs(recorder)
    assert (told["a"].failure, told["a"].gap_reason) == (None, str(LOCKED))
    assert told["a"].gap_s > 0
    assert told["b"].gap_s == 0


def test_a_look_that_had_no_answer_or_was_not_made_is_lost(
    server: Server, recorder: Recorder
) -> None:
    recorder.take()
    server.fails["seen"] = LOCKED
    for _ in range(3):
        recorder._tables = {"seen": Timetable(time.monotonic() - 0.001, 60.0)}
        recorder._take_due()
    server.is_lost = server.refuses = True
    recorder._tables = {"a": Timetable(time.monotonic() - 0.001, 60.0)}
    recorder._take_due()

    told = costs(recorder)
    assert (told["seen"].takes, told["seen"].lost) == (0, 3)
    assert (told["a"].takes, told["a"].lost) == (1, 1)


@pytest.mark.parametrize(
    "error", [psycopg.errors.UndefinedTable("no such view"), OSError("no such file")]
)
def test_what_does_not_pass_is_given_up(
    server: Server, recorder: Recorder, error: Exception
) -> None:
    server.fails["a"] = error
    for _ in range(2):
        recorder.take()
    assert costs(recorder)["a"].failure == str(error)
    assert values(recorder) == {"b": [1.0, 1.0]}


def test_a_gap_is_as_long_as_nothing_was_told() -> None:
    account = Account(interval_s=1.0)
    for now_s in (10.0, 11.0, 12.0 + GAP_S):  # late, as on a busy machine
        account.told(now_s)
    assert account.gap_s == 0
    account.failed(18.0, "a lock")
    account.failed(19.0, "the same, later")
    account.told(20.0)
    assert (account.gap_s, account.gap_reason) == (3.0, "a lock")
    account.told(21.0 + 2 * GAP_S)
    assert (account.gap_s, account.gap_reason) == (4.0 + 2 * GAP_S, "a lock")
    account.ended(100.0)
    assert account.gap_s == 4.0 + 2 * GAP_S, "it was not asked"
    account.failed(101.0, "gone")
    account.ended(102.0)
    assert account.gap_s == pytest.approx(4.0 + 2 * GAP_S + 102.0 - (21.0 + 2 * GAP_S))


def test_answers_that_take_long_are_a_gap_though_nothing_failed() -> None:
    account = Account(interval_s=1.0)
    account.told(10.0)
    account.told(11.5 + GAP_S)
    assert (account.gap_s, account.gap_reason) == (1.5 + GAP_S, "the answers took so long")


def cost(name: str, gap_s: float, why: str = "gone") -> SamplerCost:
    return SamplerCost(name, "series", 9, 0, 0.1, 1000.0, None, gap_s, why)


def test_samplers_that_lost_their_session_together_are_told_together() -> None:
    several = [cost(name, 2.0) for name in ("a", "b", "c", "d", "e")]
    assert gaps_of([*several, cost("f", 0.0, ""), cost("g", 1.25, "a lock"), cost("h", 2.25)]) == [
        ("samplers a, b, c and 3 more", "told nothing for 2.2 s: gone"),
        ("sampler g", "told nothing for 1.2 s: a lock"),
    ]


class Told:
    """A session that keeps what it is asked."""

    def __init__(self) -> None:
        self.closed = False
        self.asked: list[bytes] = []

    def execute(self, words: bytes) -> None:
        self.asked.append(words)

    def close(self) -> None:
        self.closed = True


class Peer(Told):
    """One whose other end never answers; it has `pgconn`, as those of psycopg have."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.other = socket.socketpair()
        self.pgconn = SimpleNamespace(socket=self.own.fileno())


def opening(*peers: Told) -> Any:
    """What opens a session after the other."""
    several = iter(peers)
    return lambda: cast(Any, next(several))


def test_all_sessions_are_cut_and_a_poolers_console_has_no_limits() -> None:
    replica, primary, console = (Peer() for _ in range(3))
    both = Link(opening(replica), opening(primary), samplers=lambda *_: [])
    of_pooler = Link(opening(console), samplers=lambda _: [], limited=False)
    for link in (both, of_pooler):
        link.found()
        link.cut()
    assert [len(one.asked) for one in (replica, primary, console)] == [1, 1, 0]
    for one in (replica, primary, console):
        assert one.other.recv(1) == b"", "whoever waits for an answer is told that none comes"
        one.own.close()
        one.other.close()


@pytest.mark.parametrize("lost", [0, 1], ids=["replica", "primary"])
def test_of_several_sessions_one_that_is_lost_has_all_opened_anew(lost: int) -> None:
    peers = [Told() for _ in range(4)]
    given: list[tuple[Any, ...]] = []

    def samplers(*sessions: Any) -> list[Any]:
        given.append(sessions)
        return []

    with Link(opening(*peers[::2]), opening(*peers[1::2]), samplers=samplers) as link:
        link.found()
        assert not link.is_lost
        peers[lost].closed = True
        assert link.is_lost
        link.again()
        assert not link.is_lost
        assert given == [tuple(peers[:2]), tuple(peers[2:])]
        assert [len(one.asked) for one in peers] == [1] * 4, "each has its limits"
    assert all(one.closed for one in peers)


def test_sessions_of_which_one_is_refused_stay_lost_and_leave_none_open() -> None:
    first, again = Told(), Told()
    link = Link(opening(first, again), opening(Told()), samplers=lambda *_: [])
    with pytest.raises(StopIteration):
        link.again()
    assert link.is_lost
    assert first.closed
    assert again.closed
    assert not link.sessions
