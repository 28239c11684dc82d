"""A run with something planted in its window, and what its report then shows at that second."""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

import pgdyno
from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.signal_facts import SignalLine
from pgdyno.analysis.timeline_facts import Mark, Timeline
from pgdyno.model.progress import DriveProgress, Event
from pgdyno.model.run import TrialState
from tests.waiting import DEADLINE_S, until

NS = 1e9
_QUIET_S = 2.0  # of the window, before anything is planted
_ATTEMPTS = 3  # with windows of 9, 27 and 81 s
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Server:
    """That of the trial, as somebody else reaches it."""

    data: Path

    def session(self, **options: Any) -> psycopg.Connection[Any]:
        """In autocommit mode, in the database of the load."""
        return psycopg.connect(
            host=str(self.data.with_name("data.sockets")), port=5432, user="postgres",
            dbname="tpcc", autocommit=True, **options,
        )  # fmt: skip

    def pids(self) -> list[int]:
        """Of the postmaster and of all its processes."""
        pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        postmaster = psutil.Process(pid)
        return [pid, *(one.pid for one in postmaster.children())]


@dataclass(frozen=True)
class Seen:
    """What was planted when, and the report of the run; seconds are those of the window."""

    facts: Facts
    start_s: float
    end_s: float
    begin_ns: int  # of the window

    def second(self, unix_s: float) -> float:
        """A moment of the calendar as a second of the window."""
        return unix_s - self.begin_ns / NS

    @property
    def trial(self) -> TrialFacts:
        """The only one."""
        (trial,) = self.facts.trials
        return trial

    @property
    def timeline(self) -> Timeline:
        """Of the only trial."""
        assert self.trial.timeline is not None
        return self.trial.timeline

    def marks(self, kind: str) -> list[Mark]:
        """Events of this kind that overlap what was planted."""
        found = [one for one in self.timeline.marks if one.kind == kind]
        return [one for one in found if one.end_s >= self.start_s and one.start_s <= self.end_s]

    def line(self, signal: str) -> SignalLine:
        """The line of a signal; it must have moved."""
        names = {one.name: one for one in self.facts.signals}
        assert signal in names, f"{signal} is not among {sorted(names)}"
        (line,) = names[signal].lines
        return line

    def during(self, signal: str) -> list[float]:
        """Values of a signal while it was planted, with a second on both sides."""
        line = self.line(signal)
        return self._between(line.second, line.values, self.start_s - 1, self.end_s + 1)

    def before(self, signal: str) -> list[float]:
        """Values of a signal in the window before that."""
        line = self.line(signal)
        return self._between(line.second, line.values, 0, self.start_s - 1)

    def active(self, group: str) -> list[float]:
        """Active sessions of a group of waits while it was planted."""
        (sessions,) = self.facts.sessions
        (line,) = sessions.lines
        return self._between(
            line.second, line.groups.get(group, (0.0,) * len(line.second)),
            self.start_s, self.end_s,
        )  # fmt: skip

    @staticmethod
    def _between(
        seconds: Sequence[float], values: Sequence[float], first: float, last: float
    ) -> list[float]:
        found = [v for s, v in zip(seconds, values, strict=True) if first <= s <= last]
        assert found, f"nothing was sampled from {first} to {last} s"
        return found


def seen(plan: dict[str, Any], folder: Path, home: Path, plant: Callable[[Server], None]) -> Seen:
    """Run a plan of one trial; two seconds after its window began, something is planted.

    How long that takes only the machine knows: a window that ended before is too short, and the
    next one is longer.
    """
    for attempt in range(_ATTEMPTS):
        longer = copy.deepcopy(plan)
        longer["protocol"]["window_s"] *= 3**attempt
        if found := _seen(longer, folder / f"run{attempt}.sqlite", home, plant):
            return found
    raise AssertionError(f"it was not planted within {longer['protocol']['window_s']:.0f} s")


def _seen(
    plan: dict[str, Any], out: Path, home: Path, plant: Callable[[Server], None]
) -> Seen | None:
    """The same once; None: the window ended before that was planted."""
    began, ends, failed = threading.Event(), list[int](), list[BaseException]()

    def listen(event: Event) -> None:
        if isinstance(event, DriveProgress) and event.phase == "window":
            began.set()

    def act() -> None:
        try:
            assert began.wait(DEADLINE_S), "no window began"
            time.sleep(_QUIET_S)
            ends.append(time.time_ns())
            plant(Server(home / "work" / "data"))
        except BaseException as error:
            failed.append(error)
        finally:
            ends.append(time.time_ns())

    planting = threading.Thread(target=act)
    planting.start()
    try:
        run = pgdyno.run(pgdyno.load_plan(plan), out=out, on_event=listen)
    finally:
        began.set()
        planting.join()
    with run._file() as file:
        (trial,) = file.trials()
    assert trial.result is not None, (trial.reason, failed)
    begin_ns, end_ns = trial.result.window_ns
    if ends[-1] > end_ns:
        return None
    if failed:
        raise failed[0]
    assert trial.state is TrialState.FINISHED, trial.reason
    start, end = ((at - begin_ns) / NS for at in ends)
    assert 0 < start < end, "it was planted within the window"
    return Seen(run.facts, start, end, begin_ns)


@contextmanager
def control_group(controller: str, pids: Sequence[int], limits: dict[str, str]) -> Iterator[None]:
    """These processes are held back by a group of their own, and are put back afterwards."""
    group = CGROUPS / controller / f"pgdyno-tests-{os.getpid()}"
    before = {pid: _group_of(controller, pid) for pid in pids}
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name).write_text(value)
        for pid in pids:
            _move(pid, group)
        yield
    finally:
        left = [int(one) for one in (group / "cgroup.procs").read_text().split()]
        for pid in left:  # those born meanwhile, too
            _move(pid, before.get(pid, before[pids[0]]))
        until(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
        group.rmdir()


def _group_of(controller: str, pid: int) -> Path:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return CGROUPS / controller / path.lstrip("/")
    raise AssertionError(f"no group of {controller}")


def _move(pid: int, group: Path) -> None:
    with suppress(ProcessLookupError):
        (group / "cgroup.procs").write_text(str(pid))
