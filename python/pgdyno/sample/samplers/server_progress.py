"""Vacuum, analyze, index builds, COPY and their like as they go on: pg_stat_progress_*.

Tally `progress`: command, relation and phase of each, once a second, as the series saw them. Series
`progress.<command>.running`, `.done` and `.total`: how many of them run, and how far all of them
together are in blocks (COPY, base backup: bytes); a total that is not known counts as what is done.
Of those that the role may not see, the server tells that they run, and nothing else: how far those
commands are together is not known then.

Source: PostgreSQL, "The Cumulative Statistics System", "Progress Reporting".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgdyno.model.server_views import PROGRESS, PROGRESS_OF_OTHERS
from pgdyno.sample.lacking import (
    is_on,
    major_of,
    not_before,
    not_granted,
    reads_all_statistics,
    switched_off,
)
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Missing, Row, Sampler, Subject, Tally


@dataclass(frozen=True, slots=True)
class _Command:
    """One of the views."""

    first: int  # major version
    phase: str
    done: str
    total: str
    has_relation: bool = True
    unit: str = "1"  # of how far it is: blocks
    name: str = ""  # it has where it is missing; empty: all versions show it


_COMMANDS = {
    "vacuum": _Command(12, "phase", "heap_blks_scanned", "heap_blks_total"),
    "analyze": _Command(
        13, "phase", "sample_blks_scanned", "sample_blks_total", name="progress of ANALYZE"
    ),
    "cluster": _Command(12, "command || ': ' || phase", "heap_blks_scanned", "heap_blks_total"),
    "create_index": _Command(12, "phase", "blocks_done", "blocks_total"),
    "copy": _Command(
        14, "command", "bytes_processed", "bytes_total", unit="B", name="progress of COPY"
    ),
    "basebackup": _Command(
        13, "phase", "backup_streamed", "backup_total", has_relation=False, unit="B",
        name="progress of base backups",
    ),
}  # fmt: skip
_INTERVAL_S = 1.0
_TOLD_WITH = "track_activities"
_RELATION = """
CASE WHEN datname = current_database() THEN relid::regclass::text
     ELSE datname || '.' || relid END"""

Going = tuple[str, str | None, str | None, float, float]  # command, relation, phase, done, total


def commands(major: int) -> list[str]:
    """Those whose progress this version shows."""
    return [name for name, command in _COMMANDS.items() if command.first <= major]


def missing(major: int) -> list[Missing]:
    """Those whose progress later versions show."""
    return [
        not_before(command.name, major, command.first)
        for command in _COMMANDS.values()
        if command.first > major
    ]


def query(major: int) -> str:
    """All that go on; of those that the role may not see, no phase is told."""
    told = [_going(name, _COMMANDS[name]) for name in commands(major)]
    return "\nUNION ALL\n".join(told)


def _going(name: str, command: _Command) -> str:
    relation = _RELATION if command.has_relation else "NULL::text"
    return f"""
        SELECT '{name}', {relation}, {command.phase}, coalesce({command.done}, 0)::float8,
               greatest({command.done}, {command.total}, 0)::float8
        FROM pg_stat_progress_{name}"""  # noqa: S608  our words


def row_of(rows: Iterable[Going], major: int) -> Row:
    """How many of each command run, and how far they are together, where all may be seen."""
    row = {
        f"progress.{name}.{what}": 0.0
        for name in commands(major)
        for what in ("running", "done", "total")
    }
    hidden = set()
    for name, _, phase, done, total in rows:
        row[f"progress.{name}.running"] += 1
        row[f"progress.{name}.done"] += done
        row[f"progress.{name}.total"] += total
        if phase is None:
            hidden |= {f"progress.{name}.done", f"progress.{name}.total"}
    return {name: value for name, value in row.items() if name not in hidden}


def keys_of(rows: Iterable[Going]) -> list[tuple[str, ...]]:
    """Command, relation and phase of each."""
    return [(name, relation or "", phase or "") for name, relation, phase, *_ in rows]


def sampler(subject: Subject) -> Found:
    """Tally and series; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    if not is_on(session, _TOLD_WITH):
        return switched_off(PROGRESS, _TOLD_WITH)
    major = major_of(session)
    prepared = Prepared(session, query(major))
    last: list[Going] = []

    def take() -> Row:
        last[:] = prepared.rows()
        return row_of(last, major)

    columns = tuple(
        Column(f"progress.{name}.{what}", unit, "gauge")
        for name in commands(major)
        for what, unit in (
            ("running", "1"), ("done", _COMMANDS[name].unit), ("total", _COMMANDS[name].unit),
        )
    )  # fmt: skip
    found: list[Sampler | Tally | Missing] = [
        Sampler("how far commands are", columns, take, _INTERVAL_S),
        Tally(
            "progress", ("command", "relation", "phase"), lambda: keys_of(last), _INTERVAL_S
        ),
        *missing(major),
    ]  # fmt: skip
    if not reads_all_statistics(session):
        found.append(not_granted(session, PROGRESS_OF_OTHERS, "how far others' commands are"))
    return found
