"""Checkpoints, autovacuums and errors, as the server's own log tells them.

Lines begin with `%m [%p] `, in UTC and English; `stage.cluster` sets that up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from pgdyno.model.run import Event, Recovery

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] +(\w+): +(.*)$")
_STARTING = re.compile(r"(checkpoint|restartpoint) starting: (.*)")
_COMPLETE = re.compile(r"(checkpoint|restartpoint) complete: (.*)")
_BUFFERS = re.compile(r"wrote (\d{1,18}) buffers")
_TIMES = re.compile(r"(write|sync|total)=(\d{1,9}(?:\.\d+)?) s")
_FILES = re.compile(r"(\d{1,18}) WAL file\(s\) added, (\d{1,18}) removed, (\d{1,18}) recycled")
_VACUUM = re.compile(r'automatic (vacuum|analyze) of table "([^"]+)"')
_ELAPSED = re.compile(r"elapsed: (\d{1,9}(?:\.\d+)?) s")
_REDO = re.compile(r"redo (starts|done) at ([0-9A-F]{1,8})/([0-9A-F]{1,8})")
BAD = frozenset({"ERROR", "FATAL", "PANIC"})


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Time in unix ns, level and message of each line; continuation lines join their head."""
    head: tuple[int, str, str] | None = None
    # Only that: whatever else separates lines may stand in a client's words.
    for line in text.removesuffix("\n").split("\n"):
        if match := _LINE.match(line):
            if head:
                yield head
            try:
                stamp = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
            except ValueError:  # no such day: the line is a piece of another
                continue
            head = (round(stamp.timestamp() * 1000) * 1_000_000, match[3], match[4])
        elif head:
            head = (head[0], head[1], f"{head[2]} {line.strip()}")
    if head:
        yield head


def events(text: str) -> list[Event]:
    """Checkpoints (with cause, buffers and times) and autovacuums, in order of their start."""
    result: list[Event] = []
    open_checkpoint: tuple[int, str] | None = None
    for at, _level, message in _lines(text):
        if match := _STARTING.search(message):
            open_checkpoint = (at, match[2])
        elif match := _COMPLETE.search(message):
            start, cause = open_checkpoint or (at, "unknown")
            result.append(Event("checkpoint", start, at, {"cause": cause, **_detail(match[2])}))
            open_checkpoint = None
        elif match := _VACUUM.search(message):
            elapsed = _ELAPSED.search(message)
            took_ns = round(float(elapsed[1]) * 1e9) if elapsed else 0
            result.append(Event(f"auto{match[1]}", at - took_ns, at, {"table": match[2]}))
    if open_checkpoint:
        result.append(Event("checkpoint", open_checkpoint[0], None, {"cause": open_checkpoint[1]}))
    return sorted(result, key=lambda event: event.start_ns)


def recovery(text: str) -> Recovery | None:
    """What the last start of the server took, crash recovery included; None if it is not told."""
    began = ready = None
    redo: dict[str, tuple[int, int]] = {}  # starts, done -> time and position in WAL
    for at, _level, message in _lines(text):
        if message.startswith("starting PostgreSQL"):
            began, ready, redo = at, None, {}
        elif match := _REDO.match(message):
            redo[match[1]] = (at, (int(match[2], 16) << 32) + int(match[3], 16))
        elif message.startswith("database system is ready to accept connections"):
            ready = at
    if began is None or ready is None:
        return None
    start, end = (redo.get(name, (0, 0)) for name in ("starts", "done"))
    if 0 in (start[0], end[0]):
        start = end = (0, 0)
    return Recovery((ready - began) / 1e9, (end[0] - start[0]) / 1e9, end[1] - start[1])


def bad_lines(text: str) -> list[str]:
    """Errors the server reported, as `ERROR: message`."""
    return [f"{level}: {message}" for _, level, message in _lines(text) if level in BAD]


def _detail(text: str) -> dict[str, float]:
    detail: dict[str, float] = {}
    if match := _BUFFERS.search(text):
        detail["buffers"] = int(match[1])
    detail |= {f"{name}_s": float(value) for name, value in _TIMES.findall(text)}
    if match := _FILES.search(text):
        names = ("wal_added", "wal_removed", "wal_recycled")
        detail |= {name: int(match[i + 1]) for i, name in enumerate(names)}
    return detail
