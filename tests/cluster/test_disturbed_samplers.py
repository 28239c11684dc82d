"""Samplers of a server that disturbs them: ended sessions, locks, and one that answers nobody."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

import pgdyno
from pgdyno.catalog.waits import wait_of
from pgdyno.sample import recorder as recording
from pgdyno.sample.link import Found, Link, Session
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import samplers_of, samplers_of_server
from pgdyno.session import own_session
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def server(session_home: object) -> Iterator[pgdyno.Server]:
    with pgdyno.Server({"autovacuum": "off"}) as running:
        yield running


@contextmanager
def recording_of(server: pgdyno.Server) -> Iterator[tuple[Link, Recorder]]:
    """All samplers of a server that is ours."""

    def samplers(session: Session) -> Found:
        return samplers_of_server(
            Subject(session, ["postgres"], ours=True, wait_of=wait_of,
                    own_pids={session.info.backend_pid})
        )  # fmt: skip

    with ExitStack() as stack:
        opened = Link(lambda: own_session(server.connection), samplers=samplers, quiet=True)
        link = stack.enter_context(opened)
        yield link, stack.enter_context(Recorder(link.found(), link=link))


def takes(recorder: Recorder, name: str) -> int:
    return next(one.takes for one in recorder.telemetry().samplers if one.name == name)


def goes_on(recorder: Recorder, *names: str) -> None:
    before = {name: takes(recorder, name) for name in names}
    until(
        lambda: all(takes(recorder, name) > before[name] + 1 for name in names), "further samples"
    )


def test_an_ended_session_is_opened_anew_and_the_gap_is_told(server: pgdyno.Server) -> None:
    with recording_of(server) as (link, recorder):
        goes_on(recorder, "sessions", "transactions")
        first = link.sessions[0].info.backend_pid
        with server.connect() as other:
            other.execute("SELECT pg_terminate_backend(%s)", (first,))
        until(
            lambda: not link.is_lost and link.sessions[0].info.backend_pid != first, "a new session"
        )
        goes_on(recorder, "sessions", "transactions", "server statistics")

    told = recorder.telemetry()
    assert [one.failure for one in told.samplers if one.failure] == []
    gaps = {one.name: one.gap_s for one in told.samplers if one.gap_s}
    assert {"sessions", "transactions", "server statistics"} <= gaps.keys()
    (reason,) = {one.gap_reason for one in told.samplers if one.name in ("sessions", "slru")}
    assert "terminat" in reason or "closed the connection" in reason


def test_a_locked_catalogue_stops_who_reads_it_and_nobody_else(server: pgdyno.Server) -> None:
    with ExitStack() as stack:
        other = stack.enter_context(server.connect())
        _, recorder = stack.enter_context(recording_of(server))
        goes_on(recorder, "transactions")
        with other.transaction():
            other.execute("LOCK TABLE pg_database")
            goes_on(recorder, "sessions", "slru")
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            until(lambda: other.execute(waiting).fetchone() == (0,), "nobody queues for it")
        goes_on(recorder, "transactions")

    told = {one.name: one for one in recorder.telemetry().samplers}
    assert told["transactions"].gap_s > 0
    assert "lock timeout" in told["transactions"].gap_reason
    assert "lock" not in told["sessions"].gap_reason
    assert "lock timeout" not in server.log(), "an error in the log would be the load's"


def test_a_server_that_answers_nobody_delays_no_end(
    server: pgdyno.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_ANSWER_S", 0.5)
    stopped: list[int] = []
    try:
        with Recorder(samplers_of(Subject())) as host:
            with recording_of(server) as (link, recorder):
                goes_on(recorder, "sessions")
                stopped.append(link.sessions[0].info.backend_pid)
                os.kill(stopped[0], signal.SIGSTOP)
                until(lambda: psutil.Process(stopped[0]).status() == "stopped", "it stands still")
                goes_on(host, "host cpu")
                began_s = time.monotonic()
            assert time.monotonic() - began_s < DEADLINE_S
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    told = {one.name: one for one in recorder.telemetry().samplers}
    assert told["sessions"].gap_s > 0
