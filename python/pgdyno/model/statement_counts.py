"""What pg_stat_statements counted between the ends of a window, and of what that is not known.

An entry that was reset, or evicted and made anew, may have outgrown meanwhile what it was: since 17
each tells since when it counts, since 14 the extension tells when all were reset. Before, only what
fell is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pgdyno.model.counters import ROUNDED
from pgdyno.model.run import Cell, SnapshotRows

STATEMENTS, COUNTS = "statements", "statement counts"
"""The snapshots: a row for each entry; and one row of what is known of all entries."""
SINCE = "since_unix_s"  # of an entry; None: not told
READ, RESET, EVICTIONS = "read_unix_s", "reset_unix_s", "evictions"
MOST = 1000  # entries that are read

Row = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class StatementGrowth:
    """What the entries counted in a window."""

    seconds: float  # between the two looks
    grown: tuple[tuple[Row, dict[str, float]], ...]  # entries that were called, by what they grew
    unknown: int  # entries that began anew, or were not among those read first
    evictions: int  # times that entries were thrown out to make room; 0 where it is not told


def statement_growth(snapshots: Iterable[SnapshotRows]) -> StatementGrowth | None:
    """What was counted between the two looks; None: there were none, or not both.

    Args:
        snapshots: Of a window, of one server.
    """
    at = {(one.name, one.at): one for one in snapshots if one.name in (STATEMENTS, COUNTS)}
    begin, end = at.get((STATEMENTS, "begin")), at.get((STATEMENTS, "end"))
    if begin is None or end is None or end.unix_ns <= begin.unix_ns:
        return None
    first, last = (_only(at.get((COUNTS, when))) for when in ("begin", "end"))
    reset = first.get(RESET) != last.get(RESET)
    found, unknown = [], 0
    before = {_key(row): row for row in begin.rows}
    for row in end.rows:
        grown = _grown(before.get(_key(row)), row)
        if _counted_on(before, row, first, reset):
            if grown["calls"] > 0:
                found.append((row, grown))
        elif any(grown.values()):
            unknown += 1
    evictions = _number(last.get(EVICTIONS)) - _number(first.get(EVICTIONS))
    seconds = (end.unix_ns - begin.unix_ns) / 1e9
    return StatementGrowth(seconds, tuple(found), unknown, max(0, round(evictions)))


def _only(counts: SnapshotRows | None) -> Row:
    return counts.rows[0] if counts is not None and counts.rows else {}


def _key(row: Row) -> tuple[str, str]:
    return str(row["queryid"]), str(row.get("entry", ""))  # files before had no entries


def _counted_on(before: Mapping[tuple[str, str], Row], row: Row, first: Row, reset: bool) -> bool:
    """Whether what an entry grew by is what was counted in the window."""
    then, since = before.get(_key(row)), row.get(SINCE)
    if then is not None:
        anew = reset if since is None else since != then.get(SINCE)
        return not anew and not any(_fell(then, row))
    if since is not None and first.get(READ) is not None:
        return _number(since) >= _number(first[READ])  # else it was there, and not read
    return not reset and len(before) < MOST


def _fell(then: Row, row: Row) -> Iterator[bool]:
    for name, value in row.items():
        if name != SINCE and _is_number(value) and _is_number(then.get(name)):
            yield _number(value) < _number(then[name]) * (1 - ROUNDED)


def _grown(then: Row | None, row: Row) -> dict[str, float]:
    """What each number grew by; what was not there before began at zero."""
    return {
        name: _number(value) - _number(then.get(name) if then else None)
        for name, value in row.items()
        if name != SINCE and _is_number(value)
    }


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
