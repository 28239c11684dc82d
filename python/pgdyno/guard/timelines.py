"""Timelines: what a history file says, and whether WAL of one is that of another."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.pages.files import text_of
from pgdyno.pages.segment_names import history_name


def lines_of(history: str) -> list[tuple[int, str]]:
    """Timelines of a history file, and where each ended.

    Raises:
        TargetError: It cannot be read.
    """
    found = []
    for line in history.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            found.append((int(words[0]), words[1]))
            lsn_of(words[1])
        except (ValueError, IndexError) as error:
            raise TargetError(f"a history of timelines has the line {line!r}") from error
    return found


def own_lines(data: Folder, timeline: int) -> list[tuple[int, str]]:
    """What a cluster that is not running says of the timelines that its own came from.

    Raises:
        TargetError: Its history cannot be read.
    """
    name = history_name(timeline)
    with Folder.hold(data.path / "pg_wal") as wal:
        return lines_of(text_of(wal, name)) if wal.has(name) else []


def left_at(timeline: int, lsn: str, ours: int, lines: Sequence[tuple[int, str]]) -> str | None:
    """Where WAL up to a place leaves what a cluster has; None: it does not.

    Args:
        timeline: Of the WAL.
        lsn: Up to here.
        ours: The cluster's timeline.
        lines: Those that it came from, and where each ended.

    Returns:
        An LSN; empty: it is not known, the one is not in the history of the other.
    """
    if timeline == ours:
        return None
    ended = dict(lines).get(timeline, "")
    return None if ended and lsn_of(lsn) <= lsn_of(ended) else ended
