"""What the log of a server that is not ours tells of a window, read by SQL where the role may.

Nothing of the server is changed, and nothing is read but what was written since shortly before the
samplers were begun, of each file at most `MOST_BYTES`; of more than two files the first and the
last. Texts are read here and are gone: events alone are kept. Lines have to begin with `%m [%p] `,
as PostgreSQL comes, and to be English; what stands between that and the level, as `user@database`,
is passed over. Times are those of the server's clock, less what that is ahead of ours, as far as
the answer to a question tells it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from json import dumps, loads
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from pgdyno.model.event_detail import EventDetail
from pgdyno.model.run import Cell, Event, SnapshotRows
from pgdyno.sample.server_log import LogSummary, read_log
from pgdyno.sample.table_query import Rows, rows_of

MOST_BYTES = 16 << 20  # of a file
SNAPSHOT = "log"
READ, LEFT_OUT = "read", "left_out_bytes"
"""The first row of the snapshot: since when was read, and how much of that was not."""
_BEFORE_BYTES = 1 << 20  # in which a checkpoint that is under way may have begun
_CHUNK_BYTES = 1 << 20
_LINE = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{3}) (\S{1,40}) (\[\d{1,10}\]) (?:\S{1,128} ){0,4}?"
    r"(LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG|STATEMENT|DETAIL|HINT|CONTEXT): +(.*)$"
)
_NOW = """
SELECT file, extract(epoch FROM clock_timestamp())::float8 AS now_s,
       coalesce((SELECT size FROM pg_ls_logdir() WHERE name = regexp_replace(file, '.*/', '')), 0)
         AS bytes
FROM pg_current_logfile('stderr') file"""
_READ = "SELECT pg_read_binary_file(%(file)s, %(from)s, %(bytes)s, true) AS bytes"


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a log has come."""

    file: str
    size: int
    ahead_s: float  # the server's clock of ours
    at_s: float  # by our clock


def told(snapshots: Sequence[SnapshotRows], window_ns: tuple[int, int]) -> LogSummary | None:
    """What a snapshot of a log tells of a window; None: it was not read since before that.

    Errors of a server that others use, too, say nothing against the load: they are not counted.

    Args:
        snapshots: Of one server.
        window_ns: Begin and end.
    """
    for look in snapshots:
        if look.name != SNAPSHOT or look.at != "end":
            continue
        first, *events = look.rows
        if int(str(first["start_ns"])) <= window_ns[0]:
            return LogSummary(tuple(map(_event, events)), None, {})
    return None


def left_out_bytes(snapshots: Sequence[SnapshotRows]) -> int:
    """How much of a log was too much to be read."""
    looks = (one.rows[0] for one in snapshots if one.name == SNAPSHOT and one.at == "end")
    return sum(int(loads(str(row["detail"]))[LEFT_OUT]) for row in looks)


def _event(row: Mapping[str, Cell]) -> Event:
    end_ns = row["end_ns"]
    return Event(
        str(row["kind"]), int(str(row["start_ns"])),
        None if end_ns is None else int(str(end_ns)),
        EventDetail(**loads(str(row["detail"]))),
    )  # fmt: skip


class Logged:
    """The log since this was made.

    Args:
        session: Of a role that may read it.
        zone: That its lines have their times in.
    """

    def __init__(self, session: psycopg.Connection[Any], zone: ZoneInfo) -> None:
        self._session = session
        self._zone = zone
        self._begin = self._place()

    def rows(self) -> Rows:
        """A row of what was read, and one for each event.

        Raises:
            psycopg.Error: The server does not answer, or no longer lets the role read.
        """
        end = self._place()
        first = max(0, self._begin.size - _BEFORE_BYTES)
        is_anew = end.size < self._begin.size  # under the same name
        parts = [(end.file, 0 if is_anew else first, end.size)]
        if end.file != self._begin.file:
            parts = [(self._begin.file, first, first + MOST_BYTES), (end.file, 0, end.size)]
        texts = [self._text(*part) for part in parts]
        found = read_log(line for text in texts for line in in_utc(text, self._zone))
        since_ns, ahead_ns = round(self._begin.at_s * 1e9), round(end.ahead_s * 1e9)
        events = [
            replace(
                one,
                start_ns=one.start_ns - ahead_ns,
                end_ns=None if one.end_ns is None else one.end_ns - ahead_ns,
            )
            for one in found.events
            if one.detail.cause != "unknown"  # its begin was not read
        ]
        going_on = (one for one in events if one.end_ns is None or one.end_ns >= since_ns)
        left_out = sum(max(0, end - begin - MOST_BYTES) for _, begin, end in parts)
        return [_row(READ, since_ns, None, {LEFT_OUT: left_out}), *map(_of_event, going_on)]

    def _place(self) -> _Place:
        before_s = time.time()
        (row,) = rows_of(self._session, _NOW)
        after_s = time.time()
        ahead_s = float(row["now_s"]) - (before_s + after_s) / 2
        if abs(ahead_s) <= after_s - before_s:  # no further apart than is known
            ahead_s = 0.0
        return _Place(str(row["file"]), int(row["bytes"]), ahead_s, before_s)

    def _text(self, file: str, begin: int, end: int) -> str:
        chunks, at, stop = [], begin, min(end, begin + MOST_BYTES)
        while at < stop:
            asked = {"file": file, "from": at, "bytes": min(_CHUNK_BYTES, stop - at)}
            (row,) = rows_of(self._session, _READ, asked)
            if not (chunk := bytes(row["bytes"] or b"")):
                break
            chunks.append(chunk)
            at += len(chunk)
        return b"".join(chunks).decode(errors="replace")


def in_utc(text: str, zone: ZoneInfo) -> Iterator[str]:
    """Lines as `server_log` reads them: in UTC, without what stands before the level.

    Args:
        text: Of a log; what does not begin as a message continues the one before.
        zone: That its times are in.
    """
    for line in text.splitlines():
        if match := _LINE.match(line):
            stamp, part, name, pid, level, message = match.groups()
            if (at := _instant(stamp, name, zone)) is not None:
                yield f"{at:%Y-%m-%d %H:%M:%S}{part} UTC {pid} {level}:  {message}"
        else:
            yield line


def _instant(stamp: str, name: str, zone: ZoneInfo) -> datetime | None:
    """By the name of the zone at that moment the hour that comes twice a year is known, too."""
    try:
        local = datetime.fromisoformat(stamp).replace(tzinfo=zone)
    except ValueError:
        return None
    named = [one for one in (local, local.replace(fold=1)) if one.tzname() == name]
    return named[0].astimezone(UTC) if named else None


def _of_event(one: Event) -> dict[str, Any]:
    known = {key: value for key, value in asdict(one.detail).items() if value is not None}
    return _row(one.kind, one.start_ns, one.end_ns, known)


def _row(kind: str, start_ns: int, end_ns: int | None, detail: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "start_ns": start_ns, "end_ns": end_ns, "detail": dumps(detail)}
