"""Limits to be planted, in doses that a seed draws, and loads that have none.

Each plant is a load with the limit, and the same load without it. What is planted are settings,
statements, and what goes on beside the load: neighbours on the host, sessions of others, limits of
control groups of version 1. Seeds are even or odd: thresholds may be set on the even ones alone.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from pgdyno.model.progress import DriveProgress, Event, PhaseBegun, TrialEnded
from tests.cluster.planted import Server, control_group

SCALE = 50  # of TPC-B's tables: 5,000,000 accounts, 750 MB
DIRECT_IO = 16  # major version; before, what is read may lie in the kernel's cache

Beside = Callable[[Server], AbstractContextManager[None]]
"""What goes on while a load is driven, from its begin to its end."""


@dataclass(frozen=True)
class Side:
    """A load: what its sessions send, how many there are, what the server is set to."""

    script: str
    connections: int
    settings: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True)
class Plant:
    """A limit in doses, and the same load without it."""

    limits: tuple[str, ...]  # the class that is to be named; of two at once any, or both
    draw: Callable[[Random], tuple[Side, Side]]  # with it, without it
    since: int = 12  # major version of the server
    window_s: int = 0  # that it takes; 0: any does

    def dose(self, name: str, seed: int) -> tuple[Side, Side]:
        """The load with it, and without it, that a seed draws."""
        return self.draw(Random(f"{name} {seed}"))


OFF = {"synchronous_commit": "off"}
_ROWS = SCALE * 100_000
_UPDATE = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;\n"


def _updating(rows: int) -> str:
    return f"\\set id random(1, {rows})\n{_UPDATE}"


UPDATE = _updating(100_000)


def reading(rows: int = 100_000) -> str:
    """A single row by its key."""
    return f"\\set id random(1, {rows})\nSELECT abalance FROM pgbench_accounts WHERE aid = :id;\n"


def holding(ms: int) -> str:
    """A row that all want, held while the client sleeps."""
    return (
        "BEGIN;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n"
        f"\\sleep {ms} ms\nCOMMIT;\n"
    )


def _spread(ms: int) -> str:
    """The same, of rows that nobody else wants."""
    return UPDATE.replace("\nUPDATE", "\nBEGIN;\nUPDATE") + f"\\sleep {ms} ms\nCOMMIT;\n"


def computing(steps: int) -> str:
    """A client that computes before it asks."""
    lines = "\n".join(f"\\set id permute(:id % 100000, 100003, {n})" for n in range(steps))
    read = "SELECT abalance FROM pgbench_accounts WHERE aid = :id % 100000 + 1;"
    return "\n".join(("\\set id random(1, 100000)", lines, read, ""))


def _summing(rows: int) -> str:
    """A statement that takes CPU time alone."""
    return f"SELECT sum(n) FROM generate_series(1, {rows}) AS n;\n"


def _asking(times: int, *, at_once: bool, then: str = "") -> str:
    """Rows one after another in a transaction, each in a round trip of its own, or all in one."""
    begin, end = ("\\startpipeline\n", "\\endpipeline\n") if at_once else ("", "")
    one = "SELECT abalance FROM pgbench_accounts WHERE aid = :id;\n"
    return f"\\set id random(1, 100000)\n{begin}BEGIN;\n{one * times}{then}COMMIT;\n{end}"


def _writing(size: int) -> str:
    """WAL of a size, and nothing else."""
    return f"SELECT pg_logical_emit_message(true, 'plant', repeat('x', {size}));\n"


def _hot(rows: int) -> str:
    """A few rows that are changed and read all the time."""
    return (
        f"\\set id random(1, {rows})\n"
        "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :id;\n"
        "SELECT tbalance FROM pgbench_tellers WHERE tid = :id;\n"
    )


def _spin() -> None:
    while True:
        pass


def spinners(number: int) -> Beside:
    """Processes of others that want CPUs."""

    @contextmanager
    def beside(_: Server) -> Iterator[None]:
        running = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(number)]
        for one in running:
            one.start()
        try:
            yield
        finally:
            for one in running:
                one.kill()
                one.join()

    return beside


def limited(controller: str, limits: Mapping[str, str]) -> Beside:
    """The server is held back by a control group; `DEVICE` stands for that of its data."""

    @contextmanager
    def beside(server: Server) -> Iterator[None]:
        of = os.stat(server.data).st_dev
        device = f"{os.major(of)}:{os.minor(of)}"
        written = {name: value.replace("DEVICE", device) for name, value in limits.items()}
        with control_group(controller, server.pids(), written):
            yield

    return beside


@contextmanager
def uncached(server: Server) -> Iterator[None]:
    """What the kernel keeps of the data is not charged to who read them before: it is let go."""
    os.sync()
    for path in (server.data / "base").rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    yield


@contextmanager
def old_snapshot(server: Server) -> Iterator[None]:
    """A transaction that is left open, which holds back what vacuum could remove."""
    with server.session() as session, session.transaction():
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*), pg_current_xact_id() FROM pgbench_branches")
        yield


def hog(held_s: float, free_s: float) -> Beside:
    """A session of somebody else that holds a row, lets it go, and takes it again."""

    def hold(session: psycopg.Connection[Any], ended: threading.Event) -> None:
        while not ended.wait(free_s):
            with session.transaction():
                session.execute("UPDATE pgbench_branches SET bbalance = 0 WHERE bid = 1")
                ended.wait(held_s)

    @contextmanager
    def beside(server: Server) -> Iterator[None]:
        ended = threading.Event()
        with server.session() as session:
            thread = threading.Thread(target=hold, args=(session, ended))
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()

    return beside


def _flush(draw: Random) -> tuple[Side, Side]:
    connections = draw.randint(1, 4)
    return Side(UPDATE, connections), Side(UPDATE, connections, OFF)


def _slow_device(draw: Random) -> tuple[Side, Side]:
    free = Side(UPDATE, draw.randint(1, 4))
    writes = f"DEVICE {draw.randint(40, 150)}"
    slow = limited("blkio", {"blkio.throttle.write_iops_device": writes})
    return replace(free, beside=(slow,)), free


def _held_rows(draw: Random) -> tuple[Side, Side]:
    ms, connections = draw.randint(10, 100), draw.randint(6, 12)
    return Side(holding(ms), connections, OFF), Side(_spread(ms), connections, OFF)


def _lock_hog(draw: Random) -> tuple[Side, Side]:
    free = Side(holding(0), draw.randint(4, 8), OFF)
    held_s = draw.uniform(0.1, 0.3)
    return replace(free, beside=(hog(held_s, held_s / 2),)), free


def _client(draw: Random) -> tuple[Side, Side]:
    one = {"threads": 1}
    return Side(computing(draw.randint(1000, 4000)), 4, client=one), Side(reading(), 4, client=one)


def _cpu(draw: Random) -> tuple[Side, Side]:
    rows, connections = draw.randint(4, 20) * 1000, 3 * (os.cpu_count() or 1)
    connections += draw.randint(0, 6)
    return Side(_summing(rows), connections), Side(_summing(rows // 4), connections)


def _reads(draw: Random) -> tuple[Side, Side]:
    script = reading(draw.randint(30, SCALE) * 100_000)
    direct = {"debug_io_direct": "data"}
    few = Side(script, draw.randint(2, 6), {"shared_buffers": "16MB", **direct})
    return few, replace(few, settings={"shared_buffers": "2GB", **direct})


def _neighbours(draw: Random) -> tuple[Side, Side]:
    free = Side(reading(), draw.randint(2, 4))
    number = (os.cpu_count() or 1) * draw.randint(3, 5)
    return replace(free, beside=(spinners(number),)), free


def _throttled(draw: Random) -> tuple[Side, Side]:
    free, part = Side(reading(), draw.randint(2, 6)), draw.uniform(0.2, 0.4)
    quota = round(10_000 * part * (os.cpu_count() or 1))
    limits = {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": str(quota)}
    return replace(free, beside=(limited("cpu", limits),)), free


def _round_trips(draw: Random) -> tuple[Side, Side]:
    times = draw.randint(5, 20)
    return Side(_asking(times, at_once=False), 1), Side(_asking(times, at_once=True), 1)


def _wal_volume(draw: Random) -> tuple[Side, Side]:
    few = Side(
        _writing(draw.randint(2, 20) * 1000), draw.randint(3, 8), {**OFF, "wal_buffers": "64kB"}
    )
    return few, replace(few, settings={**OFF, "wal_buffers": "64MB"})


def _dead_rows(draw: Random) -> tuple[Side, Side]:
    free = Side(_hot(draw.randint(5, 20)), draw.randint(2, 6), OFF)
    return replace(free, beside=(old_snapshot,)), free


def _full_pages(draw: Random) -> tuple[Side, Side]:
    """Rows of pages that were not changed since the checkpoint before the load."""
    few = {**OFF, "wal_buffers": "64kB"}
    on = Side(_updating(_ROWS), draw.randint(4, 10), few)
    return on, replace(on, settings={**few, "full_page_writes": "off"})


def _checkpoints(draw: Random) -> tuple[Side, Side]:
    """A device that takes so many bytes a second, and all that was changed at once, often.

    Each transaction writes so much WAL that a checkpoint ends before the next one begins.
    """
    mib, wal_bytes = draw.randint(80, 150), draw.randint(1000, 3000)
    slow = limited("blkio", {"blkio.throttle.write_bps_device": f"DEVICE {mib * 1024**2}"})
    calm = {**OFF, "full_page_writes": "off", "shared_buffers": "1GB", "wal_buffers": "1MB"}
    often = {"max_wal_size": "48MB", "min_wal_size": "32MB", "checkpoint_completion_target": "0"}
    script = f"{_updating(_ROWS)}{_writing(wal_bytes)}"
    seldom = Side(script, draw.randint(4, 8), calm, beside=(slow,))
    return replace(seldom, settings={**calm, **often}), seldom


def _memory(draw: Random) -> tuple[Side, Side]:
    """A control group that holds less than what is read, without swap."""
    free = Side(reading(_ROWS), draw.randint(3, 8), {"shared_buffers": "16MB"})
    held = limited("memory", {"memory.limit_in_bytes": f"{draw.randint(100, 250)}M"})
    return replace(free, beside=(held, uncached)), free


def _flush_and_round_trips(draw: Random) -> tuple[Side, Side]:
    """Two limits at once: commits that wait, behind rows that are asked for one by one."""
    times = draw.randint(5, 15)
    both = Side(_asking(times, at_once=False, then=_UPDATE), 1)
    return both, Side(_asking(times, at_once=True, then=_UPDATE), 1, OFF)


PLANTS = {
    "flush": Plant(("flush",), _flush),
    "slow_device": Plant(("flush",), _slow_device),
    "held_rows": Plant(("row_locks",), _held_rows),
    "lock_hog": Plant(("row_locks",), _lock_hog),
    "client": Plant(("client",), _client),
    "cpu": Plant(("cpu",), _cpu),
    "reads": Plant(("reads",), _reads, since=DIRECT_IO),
    "neighbours": Plant(("neighbours",), _neighbours),
    "throttled": Plant(("neighbours",), _throttled),
    "round_trips": Plant(("round_trips",), _round_trips),
    "wal_volume": Plant(("wal_insertion",), _wal_volume),
    "dead_rows": Plant(("dead_rows",), _dead_rows, window_s=24),
    "full_pages": Plant(("full_pages",), _full_pages),
    "checkpoints": Plant(("checkpoints",), _checkpoints, window_s=36),
    "memory": Plant(("memory",), _memory),
    "flush_and_round_trips": Plant(("flush", "round_trips"), _flush_and_round_trips),
}


def _paced(draw: Random) -> Side:
    rate = draw.randint(100, 400)
    return Side(draw.choice((reading(), UPDATE)), 4, OFF, {"arrivals": {"rate": rate}})


def _slept(draw: Random) -> Side:
    script = draw.choice((reading(), UPDATE))
    return Side(f"{script}\\sleep {draw.randint(10, 100)} ms\n", 4, OFF)


def _cached(draw: Random) -> Side:
    """A closed loop whose server computes: the CPUs alone, which is no alarm."""
    return Side(_summing(draw.randint(5, 20) * 1000), draw.randint(4, 8))


HEALTHY: dict[str, Callable[[Random], Side]] = {
    "paced": _paced, "slept": _slept, "cached": _cached,
}  # fmt: skip
"""Loads that have no limit but the CPUs: schedules, clients that sleep, reads from memory."""


def healthy(name: str, seed: int) -> Side:
    """The load that a seed draws."""
    return HEALTHY[name](Random(f"{name} {seed}"))


_DRIVEN = ("warmup", "window")
"""Phases of a load in which nobody connects, and so escapes a limit that is set meanwhile."""


class Company:
    """Listens to a run, and has beside each stage's load what its side asks for.

    Args:
        sides: By the name of their stage.
        data: Data directory of the trials' server.
    """

    def __init__(self, sides: Mapping[str, Side], data: Path) -> None:
        self._sides, self._data = sides, data
        self._stage, self._there = "", ExitStack()

    def __enter__(self) -> Company:
        return self

    def __exit__(self, *_: object) -> None:
        self._there.close()

    def __call__(self, event: Event) -> None:
        """Begin with the load, once all are connected, and end before anything is checked."""
        if isinstance(event, PhaseBegun):
            self._there.close()
            self._stage = event.trial.stage if event.trial and event.name == "drive" else ""
        elif isinstance(event, TrialEnded):
            self._there.close()
        elif isinstance(event, DriveProgress) and self._stage and event.phase in _DRIVEN:
            beside, self._stage = self._sides[self._stage].beside, ""
            for one in beside:
                self._there.enter_context(one(Server(self._data)))
        elif isinstance(event, DriveProgress) and event.phase in ("drain", "done"):
            self._there.close()
