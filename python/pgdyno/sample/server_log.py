"""What the server's own log tells, line by line: checkpoints, autovacuums, locks, files, errors.

Lines begin with `%m [%p] `, in UTC and English; `target.cluster` sets that up. A log may be longer
than memory: it is read once, as it comes, and what is kept of it has bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TypeAlias

from pgdyno.model.event_detail import EventDetail
from pgdyno.model.run import Event, Recovery

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] +(\w+): +(.*)$")
_STARTING = re.compile(r"(checkpoint|restartpoint) starting: (.*)")
_COMPLETE = re.compile(r"(checkpoint|restartpoint) complete: (.*)")
_BUFFERS = re.compile(r"wrote (\d{1,18}) buffers")
_TIMES = re.compile(r"(write|sync|total|longest)=(\d{1,9}(?:\.\d+)?) s")
_DISTANCE = re.compile(r"distance=(\d{1,15}) kB")
_FILES = re.compile(r"(\d{1,18}) WAL file\(s\) added, (\d{1,18}) removed, (\d{1,18}) recycled")
_VACUUM = re.compile(  # aggressive: one that freezes; it comes by age, autovacuum on or off
    r'automatic (?:aggressive )?(vacuum|analyze)(?: to prevent wraparound)? of table "([^"]+)"'
)
_ELAPSED = re.compile(r"elapsed: (\d{1,9}(?:\.\d+)?) s")
_VACUUM_WAL = re.compile(
    r"WAL usage: (\d{1,18}) records, (\d{1,18}) full page images, (\d{1,18}) bytes"
)
_VACUUM_BUFFERS = re.compile(  # misses: up to 17
    r"buffer usage: (\d{1,18}) hits, (\d{1,18}) (?:misses|reads), (\d{1,18}) dirtied"
)
_VACUUM_CPU = re.compile(r"CPU: user: (\d{1,9}(?:\.\d+)?) s, system: (\d{1,9}(?:\.\d+)?) s")
_UNREMOVABLE = re.compile(r"(\d{1,18}) are dead but not yet removable")
_LOCK_WAIT = re.compile(
    r"process (\d{1,10}) (still waiting for|acquired) (.{1,200}?) after (\d{1,12}(?:\.\d+)?) ms"
)
_TEMP_FILE = re.compile(r'temporary file: path ".{0,1000}?", size (\d{1,18})')
_REDO = re.compile(r"redo (starts|done) at ([0-9A-F]{1,8})/([0-9A-F]{1,8})")
_OF_SERVER = "LOG"  # what it says of itself; the text of a statement may hold anything
BAD = frozenset({"ERROR", "FATAL", "PANIC"})
MORE = "further messages of other words"
_MESSAGE_CHARS = 4096  # of one, with the lines that continue it
_BAD_CHARS = 600
_BAD_KINDS = 1000  # messages of different words that are counted apart
_EVENTS = 100_000
_BAD_EVENTS = 1000  # that are shown where they happened; all are counted
_EVENT_CHARS = 200  # of what is said of one
_Message: TypeAlias = tuple[str, str, str]  # time, level, text


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log tells."""

    # By start: checkpoint, restartpoint, autovacuum, autoanalyze, lock_wait, temporary_file, error,
    # recovery (from its redo until sessions may come).
    events: tuple[Event, ...]
    recovery: Recovery | None  # of the last start; None if it is not told
    bad: dict[str, int]  # `ERROR: message` -> how often, the first one first


class _Reader:
    """What was read so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.bad: dict[str, int] = {}
        self._checkpoint: Event | None = None  # that is under way, or a restartpoint
        self._began: int | None = None
        self._ready: int | None = None
        self._replays: tuple[int, int] | None = None  # begin, and position in WAL, of one under way
        self._replayed = 0
        self._redo: dict[str, tuple[int, int]] = {}  # starts, done -> time and position in WAL
        self._waiting: dict[str, Event] = {}  # process -> its wait, as far as it was told
        self._bad_events = 0

    def take(self, stamp: str, level: str, message: str) -> None:
        """A whole message."""
        if level in BAD:
            self._take_bad(_unix_ns(stamp), f"{level}: {message[:_BAD_CHARS]}")
        elif level != _OF_SERVER:
            return
        elif "checkpoint" in message or "restartpoint" in message:
            self._take_checkpoint(_unix_ns(stamp), message)
        elif message.startswith("automatic "):
            self._take_vacuum(_unix_ns(stamp), message)
        elif message.startswith("process "):
            self._take_lock_wait(_unix_ns(stamp), message)
        elif match := _TEMP_FILE.match(message):
            at, detail = _unix_ns(stamp), EventDetail(file_bytes=int(match[1]))
            self._keep(Event("temporary_file", at, at, detail))
        else:
            self._take_start(stamp, message)

    def _take_lock_wait(self, at: int, message: str) -> None:
        """A wait that nobody is told to have ended lasted as long as it was last told."""
        if not (match := _LOCK_WAIT.match(message)):
            return
        process, how, lock, waited_ms = match.groups()
        start = at - round(float(waited_ms) * 1e6)
        wait = Event("lock_wait", start, at, EventDetail(lock=lock[:_EVENT_CHARS]))
        before = self._waiting.pop(process, None)
        if before and before.detail != wait.detail:
            self._keep(before)
        if how == "acquired":
            self._keep(wait)
        else:
            self._waiting[process] = wait

    def _take_bad(self, at: int, text: str) -> None:
        self._count(text)
        self._bad_events += 1
        if self._bad_events <= _BAD_EVENTS:
            self._keep(Event("error", at, at, EventDetail(text=text[:_EVENT_CHARS])))

    def _count(self, text: str) -> None:
        key = text if text in self.bad or len(self.bad) < _BAD_KINDS else MORE
        self.bad[key] = self.bad.get(key, 0) + 1

    def _take_checkpoint(self, at: int, message: str) -> None:
        if match := _STARTING.match(message):
            self._checkpoint = Event(match[1], at, None, EventDetail(cause=match[2]))
        elif match := _COMPLETE.match(message):
            began, cause = at, "unknown"
            if (before := self._checkpoint) and before.kind == match[1]:
                began, cause = before.start_ns, before.detail.cause or cause
            self._keep(Event(match[1], began, at, _checkpoint_detail(cause, match[2])))
            self._checkpoint = None

    def _take_vacuum(self, at: int, message: str) -> None:
        if match := _VACUUM.search(message):
            elapsed = _ELAPSED.search(message)
            took_ns = round(float(elapsed[1]) * 1e9) if elapsed else 0
            detail = _vacuum_detail(match[2], message)
            self._keep(Event(f"auto{match[1]}", at - took_ns, at, detail))

    def _take_start(self, stamp: str, message: str) -> None:
        if message.startswith("starting PostgreSQL"):
            self._began, self._ready, self._redo = _unix_ns(stamp), None, {}
        elif match := _REDO.match(message):
            lsn = (int(match[2], 16) << 32) + int(match[3], 16)
            self._redo[match[1]] = (_unix_ns(stamp), lsn)
            if match[1] == "starts":
                self._replays, self._replayed = self._redo["starts"], 0
            elif self._replays:
                self._replayed = lsn - self._replays[1]
        elif message.startswith("database system is ready to accept connections"):
            self._ready = _unix_ns(stamp)
            if self._replays:
                detail = EventDetail(replayed_bytes=self._replayed)
                self._keep(Event("recovery", self._replays[0], self._ready, detail))
                self._replays = None

    def _keep(self, event: Event) -> None:
        if len(self.events) < _EVENTS:
            self.events.append(event)

    def told(self) -> tuple[Event, ...]:
        """What is kept, which makes room for as much again."""
        told, self.events, self._bad_events = tuple(self.events), [], 0
        return told

    @property
    def under_way(self) -> list[Event]:
        """What has begun: a checkpoint without an end, waits as long as they were last told."""
        return [*([self._checkpoint] if self._checkpoint else []), *self._waiting.values()]

    def summary(self) -> LogSummary:
        """All of it."""
        for event in self.under_way:
            self._keep(event)
        events = sorted(self.events, key=lambda event: event.start_ns)
        return LogSummary(tuple(events), self._recovery(), self.bad)

    def _recovery(self) -> Recovery | None:
        if self._began is None or self._ready is None:
            return None
        start, end = (self._redo.get(name, (0, 0)) for name in ("starts", "done"))
        if 0 in (start[0], end[0]):
            start = end = (0, 0)
        return Recovery(
            (self._ready - self._began) / 1e9, (end[0] - start[0]) / 1e9, end[1] - start[1]
        )


def read_log(lines: Iterable[str]) -> LogSummary:
    """Read a log to its end.

    Args:
        lines: Of the log, without their ends; those of a message that has several follow its head.
    """
    reader, messages = _Reader(), _Messages()
    for line in lines:
        if message := messages.take(line):
            reader.take(*message)
    if message := messages.rest():
        reader.take(*message)
    return reader.summary()


class LogFollower:
    """Hears a log line by line while it is written."""

    def __init__(self) -> None:
        self._reader, self._messages = _Reader(), _Messages()

    def hear(self, lines: Sequence[str]) -> tuple[Event, ...]:
        """What has ended since it last heard something.

        Args:
            lines: All new ones; none: what came last is whole by now.
        """
        for line in lines:
            if message := self._messages.take(line):
                self._reader.take(*message)
        if not lines and (message := self._messages.rest()):
            self._reader.take(*message)
        return self._reader.told()

    @property
    def under_way(self) -> tuple[Event, ...]:
        """What has begun, and is not told to have ended; the first of these first."""
        return tuple(sorted(self._reader.under_way, key=lambda event: event.start_ns))


class _Messages:
    """Puts messages together: continuation lines join their head."""

    def __init__(self) -> None:
        self._head: _Message | None = None

    def take(self, line: str) -> _Message | None:
        """The message that ends where this line begins another."""
        if (match := _LINE.match(line)) and _is_time(match[1]):
            before, self._head = self._head, (match[1], match[3], match[4][:_MESSAGE_CHARS])
            return before
        if self._head and len(self._head[2]) < _MESSAGE_CHARS:
            stamp, level, text = self._head
            self._head = (stamp, level, f"{text} {line.strip()}"[:_MESSAGE_CHARS])
        return None

    def rest(self) -> _Message | None:
        """The one that no line has ended yet."""
        before, self._head = self._head, None
        return before


def _is_time(stamp: str) -> bool:
    """Whether there is such a day; else the line is a piece of another."""
    return _is_day(stamp[:10]) and stamp[11:13] < "24" and max(stamp[14:16], stamp[17:19]) < "60"


@lru_cache(1000)
def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _unix_ns(stamp: str) -> int:
    at = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
    return round(at.timestamp() * 1000) * 1_000_000


def _vacuum_detail(table: str, text: str) -> EventDetail:
    """What a vacuum or analyze took, as far as this version tells it."""
    wal, cpu = _VACUUM_WAL.search(text), _VACUUM_CPU.search(text)
    records, images, size = map(int, wal.groups()) if wal else (None, None, None)
    buffers = _VACUUM_BUFFERS.search(text)
    hit, read, dirtied = map(int, buffers.groups()) if buffers else (None, None, None)
    unremovable = _UNREMOVABLE.search(text)
    return EventDetail(
        table=table,
        wal_records=records,
        wal_fpi=images,
        wal_bytes=size,
        cpu_s=float(cpu[1]) + float(cpu[2]) if cpu else None,
        buffers_hit=hit,
        buffers_read=read,
        buffers_dirtied=dirtied,
        unremovable_rows=int(unremovable[1]) if unremovable else None,
    )


def _checkpoint_detail(cause: str, text: str) -> EventDetail:
    buffers, files = _BUFFERS.search(text), _FILES.search(text)
    seconds = {name: float(value) for name, value in _TIMES.findall(text)}
    added, removed, recycled = map(int, files.groups()) if files else (None, None, None)
    distance = _DISTANCE.search(text)
    return EventDetail(
        cause=cause,
        buffers=int(buffers[1]) if buffers else None,
        write_s=seconds.get("write"),
        sync_s=seconds.get("sync"),
        total_s=seconds.get("total"),
        longest_s=seconds.get("longest"),
        distance_bytes=int(distance[1]) << 10 if distance else None,
        wal_added=added,
        wal_removed=removed,
        wal_recycled=recycled,
    )
