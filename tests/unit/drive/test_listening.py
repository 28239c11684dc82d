"""Silence counts only while it was listened: who did not run for a while takes nobody for gone."""

from __future__ import annotations

import io
import json
import os
import queue
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any

import pytest

from pgdyno.drive import driver, host_worker
from pgdyno.drive.fleet import Head
from pgdyno.drive.host_link import Heard, HostLink, open_link
from pgdyno.drive.listening import Listening, waits
from pgdyno.drive.transport import Transport
from pgdyno.model.errors import DriveError
from pgdyno.model.fleet import Fleet
from tests.waiting import until

ALIVE = '{"waiting": true}\n'
MOMENT_S = 0.001  # so long it is waited for lines that are there already


@dataclass
class Clock:
    """Shows what it is set to."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Pipe:
    """Both ends of a pipe that no thread reads."""

    reader: IO[str] = field(init=False)
    writer: IO[str] = field(init=False)

    def __post_init__(self) -> None:
        there, here = os.pipe()
        self.reader, self.writer = os.fdopen(there), os.fdopen(here, "w", buffering=1)

    def close(self) -> None:
        """Close what is still open of it; who waits to read is told by its end."""
        self.writer.close()
        self.reader.close()


@dataclass
class Process:
    """What a host says lies in a pipe."""

    stdout: IO[str]
    stdin: IO[str] = field(default_factory=io.StringIO)

    def wait(self, _timeout_s: float) -> int | None:
        return None


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    with closing(Pipe()) as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


def head_of(pipe: Pipe, clock: Clock) -> tuple[Head, HostLink]:
    """A head and its only host, of which nobody reads anything."""
    hears = Head(Fleet(("local:a",)), {})
    hears.listening = Listening(clock)
    process: Any = Process(pipe.reader)
    link = HostLink("local:a", process, io.BytesIO(), hears.listening)
    hears.links.append(link)
    return hears, link


def listened(hears: Head, clock: Clock, seconds: float) -> None:
    """The head runs, and looks ten times a second."""
    for _ in range(round(seconds * 10)):
        clock.now_s += 0.1
        hears.hear(MOMENT_S)


def test_a_host_is_lost_that_is_silent_while_it_is_listened(pipe: Pipe, clock: Clock) -> None:
    hears, link = head_of(pipe, clock)
    listened(hears, clock, 4.9)
    assert link.lost is None
    listened(hears, clock, 0.3)
    assert link.lost == "it said nothing for 5 s"


def test_no_host_is_lost_by_a_head_that_did_not_run(pipe: Pipe, clock: Clock) -> None:
    hears, link = head_of(pipe, clock)
    listened(hears, clock, 1.0)
    clock.now_s += 3600.0
    hears.hear(MOMENT_S)
    assert link.lost is None, "nobody was there to hear it"
    listened(hears, clock, 5.0)
    assert link.lost == "it said nothing for 5 s"


def test_a_host_is_not_lost_whose_words_wait_in_its_pipe(pipe: Pipe, clock: Clock) -> None:
    """What reads the pipe gets no CPU, while what counts the silence does."""
    hears, link = head_of(pipe, clock)
    pipe.writer.write(ALIVE)
    listened(hears, clock, 20.0)
    assert link.lost is None
    pipe.reader.readline()
    listened(hears, clock, 0.1)
    assert link.lost == "it said nothing for 5 s"


def test_the_end_of_a_host_waits_in_its_pipe_too(pipe: Pipe, clock: Clock) -> None:
    """It is told as such by what reads the pipe, with its code."""
    hears, link = head_of(pipe, clock)
    pipe.writer.close()
    listened(hears, clock, 20.0)
    assert link.lost is None
    hears._inbox.put(Heard(link, None, 0))
    process: Any = link.process
    process.wait = lambda _: 1
    listened(hears, clock, 0.1)
    assert link.lost == "its process ended with code 1"


def test_a_line_counts_from_when_it_came(pipe: Pipe, clock: Clock) -> None:
    """The head may be busy with the lines of others."""
    hears, _ = head_of(pipe, clock)
    listened(hears, clock, 4.5)
    process: Any = Process(pipe.reader)
    process.signal = process.kill_group = lambda *_: None
    process.close_pipes = pipe.close
    way = Transport("local", lambda *_: process)
    link = open_link("local:b", Fleet(()), way, queue.SimpleQueue(), listening=hears.listening)
    assert link.heard_s == pytest.approx(4.5)
    listened(hears, clock, 1.5)
    pipe.writer.write(ALIVE)
    until(lambda: link.heard_s == pytest.approx(6.0), "its line came")
    link.end()


class Late(queue.SimpleQueue[Heard]):
    """Gives the answer to a question at the second look, for which 6 s pass each time."""

    def __init__(self, link: HostLink, clock: Clock) -> None:
        self._link, self._clock = link, clock
        self._looks = 0

    def get(self, block: bool = True, timeout: float | None = None) -> Heard:
        assert block
        assert timeout
        self._looks += 1
        if self._looks % 2:
            self._clock.now_s += 6.0
            raise queue.Empty
        stdin = self._link.process.stdin
        assert isinstance(stdin, io.StringIO)
        asked = json.loads(stdin.getvalue().splitlines()[-1])
        self._link.heard_s = self._link.listening.seconds
        return Heard(self._link, json.dumps(asked | {"received_ns": 1, "sent_ns": 2}), 3)

    def get_nowait(self) -> Heard:
        raise queue.Empty


def test_a_clock_is_not_late_for_a_head_that_did_not_run(pipe: Pipe, clock: Clock) -> None:
    hears, link = head_of(pipe, clock)
    hears._inbox = Late(link, clock)
    hears.compare_clocks()
    assert link.lost is None
    assert len(link.offsets) == 1


def test_no_head_is_gone_for_a_host_that_did_not_run(
    pipe: Pipe, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host_worker, "Listening", lambda: Listening(clock))
    monkeypatch.setattr(sys, "stdin", pipe.reader)
    host = host_worker._Host()
    clock.now_s += 3600.0
    host.notice_silence()
    assert host.left_s is None

    def runs(seconds: float) -> None:
        for _ in range(round(seconds * 2)):
            clock.now_s += 0.5
            host.notice_silence()

    pipe.writer.write('{"alive": true}\n')
    runs(20.0)
    assert host.left_s is None, "it has said something"
    pipe.reader.readline()
    runs(0.5)
    assert host.left_s is not None
    assert capsys.readouterr().err == "the head said nothing for 4 s\n"


class Lines(queue.Queue[str | None]):
    """Nothing at each look, for which some time passes, as often as it is told."""

    def __init__(self, clock: Clock, passes_s: list[float]) -> None:
        super().__init__()
        self._clock, self._passes_s = clock, passes_s

    def get(self, block: bool = True, timeout: float | None = None) -> str | None:
        assert block
        assert timeout
        if not self._passes_s:
            return '{"result": {"found": 1}}'
        self._clock.now_s += self._passes_s.pop()
        raise queue.Empty


@pytest.mark.parametrize("passes_s", [[600.0], [0.5] * 200])
def test_a_driver_is_not_given_up_by_who_did_not_run(
    pipe: Pipe, clock: Clock, monkeypatch: pytest.MonkeyPatch, passes_s: list[float]
) -> None:
    monkeypatch.setattr(driver, "Listening", lambda: Listening(clock))
    process: Any = Process(pipe.reader)

    def last(passes_s: list[float]) -> object:
        return driver._last(process, Lines(clock, passes_s), lambda _: None, None)

    assert last(passes_s) == {"found": 1}
    with pytest.raises(DriveError, match="the driver said nothing for 120 s"):
        last([0.5] * 250)
    pipe.writer.write(ALIVE)
    assert last([0.5] * 250) == {"found": 1}, "what it said was not read yet"


def test_what_is_closed_holds_nothing(pipe: Pipe) -> None:
    assert not waits(pipe.reader)
    pipe.writer.close()
    assert waits(pipe.reader)
    pipe.close()
    assert not waits(pipe.reader)
    assert not waits(io.StringIO("text"))
