"""What samplers declare, and which of it no part of a report shows.

A series is shown where a row has its name. A column of a snapshot, or a dimension of a tally, is
shown where another value of it makes another page: what is only named, or only computed, changes
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from pgdyno.analysis.blocking import with_blocking
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.resources import resource_rows
from pgdyno.analysis.sampled import sampled
from pgdyno.analysis.sessions import stage_sessions
from pgdyno.analysis.snapshots import plan_facts, statement_rows, table_rows
from pgdyno.analysis.telemetry_facts import TelemetryFacts
from pgdyno.analysis.views import server_views
from pgdyno.model.run import (
    Cell,
    Series,
    SnapshotColumn,
    SnapshotRows,
    TallySeries,
    TrialRecord,
    TrialState,
)
from pgdyno.report.document import Section, Table
from pgdyno.report.sections import resources, sections, sessions, statements, views
from pgdyno.report.sections.sampled import SHOWN_IN
from pgdyno.sample.sampler import Column, Label, Missing, Sampler, Snapshot, Tally
from pgdyno.sample.samplers.server_sessions import SESSIONS
from tests.data.miniature import a_result

_RESULT = a_result()
NOT_BY_ROWS = {"resets", "statement counts"}
"""Tallies and snapshots whose values stand in the run file, or in other figures, as the page says.
One that is new has to be shown by a section, and to stand in `SHOWN_IN`, or to be put here."""
BECOME_EVENTS = {"log"}
"""Snapshots whose rows are the trial's events before it is stored: charts mark these."""
NOT_SHOWN_ALONE = {"statements": {"queryid", "entry", "since_unix_s"}, "locks": {"blocker"}}
"""Columns that say which rows of both ends are the same entry, and since when it counts; the pid
of who blocks, which is shown from the tally `sessions`."""


def not_shown(found: Iterable[Sampler | Tally | Snapshot | Missing], facts: Facts) -> set[str]:
    """Series that no section names with their values, tallies and tables that none has a place for.

    Args:
        found: Samplers.
        facts: Of any run, whose own telemetry does not matter.
    """
    declared = [one for one in found if not isinstance(one, Missing)]
    columns = [c for one in declared if isinstance(one, Sampler) for c in one.columns]
    result, series = _RESULT, [_series(column) for column in columns]
    result = replace(result, deltas={one.name: 3.0 for one in columns if one.kind == "counter"})
    record = TrialRecord(1, 1, facts.stages[0].name, "x", TrialState.FINISHED, result=result)
    everything = sampled(
        [stage.name for stage in facts.stages], [record], {1: {one.name: one for one in series}},
        {1: {one.name: _looked(one.name, one.dimensions, None) for one in declared
             if isinstance(one, Tally)}},
        {1: [_read(one) for one in declared if isinstance(one, Snapshot)]},
    )  # fmt: skip
    page = sections(replace(facts, telemetry=TelemetryFacts((), (), (), sampled=everything)))
    told = set(_words(page))
    further = {f"{one.split('.')[0]}.<" for one in told if ".<" in one}
    hidden = {
        one.name
        for one in columns
        if one.name not in told and f"{one.name.split('.')[0]}.<" not in further
    }
    tables = [one for one in declared if not isinstance(one, Sampler)]
    for one in tables:
        if one.name in SHOWN_IN and one.name not in BECOME_EVENTS:
            hidden |= {f"{one.name}.{column}" for column in _columns_not_shown(one, facts)}
    return hidden | {
        one.name
        for one in tables
        if one.name not in told or (one.name not in SHOWN_IN and one.name not in NOT_BY_ROWS)
    }


def _words(page: Iterable[Section]) -> Iterator[str]:
    """What stands first in a row; what is not known in any window stands in none."""
    for one in page:
        for block in one.blocks:
            if one.ident == "sampled" and isinstance(block, Table):
                yield from (row[0].text for row in block.rows)


def _series(column: Column) -> Series:
    begin, end = _RESULT.window_ns
    times = np.array([begin, (begin + end) // 2, end])
    return Series(column.name, column.unit, column.kind, times, np.array([1.0, 2.0, 3.0]))


def _read(one: Snapshot) -> SnapshotRows:
    return _at("end", one, _rows(one))


# -- columns of snapshots -------------------------------------------------------------------------

_WORDS: dict[str, tuple[str, str]] = {
    "group": ("server", "client"), "resource": ("memory", "cpu"), "unit": ("B", "CPUs"),
    "limit": ("max", "high"),
    "plan": ('{"Node Type":"Index Scan","Index Cond":"(a = $1)"}',
             '{"Node Type":"Index Scan","Index Cond":"(b = $1)"}'),
    "error": ("", ""),
}  # fmt: skip
"""Labels that mean something: what a row says first, and what it says then."""
_FURTHER: dict[str, dict[str, Cell]] = {
    "statements": {"statement": "", "queryid": "2"},  # without a name: told by its text
    "cgroup_limits": {"resource": "io", "limit": "read", "unit": "B/s"},  # of a device
    "plans": {"statement": "refused", "shape": "", "plan": "", "error": "no such table",
              "cost": None, "rows": None},
}  # fmt: skip
_OF_SNAPSHOTS = (resources, statements, views)  # sections
_OF_TALLIES = (sessions, views)
_FLAGS = {"active"}
"""Gauges that are 1 or 0."""
_LEVEL, _BEGUN, _ENDED = 40.0, 40.0, 90.0  # of gauges; of counters, which grow


def _columns_not_shown(one: Snapshot | Tally, facts: Facts) -> set[str]:
    """Columns, or dimensions, whose other value changes nothing in any section that shows them."""
    told: Callable[[str | None], list[Section]]
    if isinstance(one, Tally):
        names, told = {*one.dimensions}, partial(_told_of_tally, one, facts)
    else:
        names, told = {column.name for column in one.columns}, partial(_told_of, one, facts)
    usual = told(None)
    alone = NOT_SHOWN_ALONE.get(one.name, set())
    return {name for name in names - alone if told(name) == usual}


def _measured(facts: Facts) -> tuple[list[str], list[TrialRecord]]:
    """Its stages, and a trial of the first."""
    stages = [stage.name for stage in facts.stages]
    return stages, [TrialRecord(1, 1, stages[0], "x", TrialState.FINISHED, result=_RESULT)]


def _told_of(one: Snapshot, facts: Facts, other: str | None) -> list[Section]:
    """The page of a trial in which it was read, with another value of a column."""
    stages, trials = _measured(facts)
    begin, end = (_rows(one, at, other) for at in ("begin", "end"))
    looks = {1: [_at("begin", one, begin), _at("end", one, end)]}
    shown = replace(
        facts, telemetry=None,
        statements=statement_rows(stages, trials, looks), tables=table_rows(stages, trials, looks),
        plans=plan_facts(stages, trials, looks),
        views=server_views(stages, trials, {}, looks, {}),
        resources=resource_rows(stages, trials, {}, {}, looks),
    )  # fmt: skip
    return [found for module in _OF_SNAPSHOTS if (found := module.section(shown)) is not None]


def _rows(one: Snapshot, at: str = "end", other: str | None = None) -> tuple[dict[str, Cell], ...]:
    row: dict[str, Cell] = {column.name: _cell(column, at, other) for column in one.columns}
    further = {**row, **_FURTHER[one.name]} if one.name in _FURTHER else None
    if further and other and other not in _FURTHER[one.name]:
        further[other] = row[other]
    elif further and other and isinstance(further[other], str) and further[other]:
        further[other] = f"another {further[other]}"
    return (row, further) if further else (row,)


def _cell(column: Column | Label, at: str, other: str | None) -> Cell:
    another = column.name == other
    if isinstance(column, Label):
        return _WORDS.get(column.name, (f"a {column.name}", f"another {column.name}"))[another]
    if column.name in _FLAGS:
        return float(another)
    if column.kind == "gauge":
        return _LEVEL * (1 + another)
    return (_ENDED if at == "end" else _BEGUN) + 100 * another * (at == "end")


def _at(
    at: Literal["begin", "end"], one: Snapshot, rows: tuple[dict[str, Cell], ...]
) -> SnapshotRows:
    columns = tuple(SnapshotColumn(column.name, "", "label") for column in one.columns)
    begin, end = _RESULT.window_ns
    return SnapshotRows(one.name, at, begin if at == "begin" else end, columns, rows)


# -- dimensions of tallies ------------------------------------------------------------------------

_USUAL: dict[str, str] = {
    "role": "backend", "wait_class": "row", "wait_event": "Lock:transactionid", "state": "active",
    "blocker": "client 4711", "blocker_class": "client",
}  # fmt: skip
"""Dimensions that mean something: of a session that waits for another's lock."""
_OTHER: dict[str, str] = {
    "role": "checkpointer", "wait_class": "relation", "wait_event": "Lock:tuple", "state": "idle",
    "blocker": "cpu 4711", "blocker_class": "cpu",
}  # fmt: skip
_LOOKS = 10  # a second


def _told_of_tally(one: Tally, facts: Facts, other: str | None) -> list[Section]:
    """The page of a trial whose every look met two keys, the second with another value."""
    stages, trials = _measured(facts)
    tallies = {1: {one.name: _looked(one.name, one.dimensions, other)}}
    if one.name == "locks":  # who waits is told beside what sessions did
        tallies[1]["sessions"] = _looked("sessions", SESSIONS, None)
    found = stage_sessions(stages[0], trials, tallies)
    shown = replace(
        facts, telemetry=None,
        sessions=(with_blocking(found, trials, tallies),) if found else (),
        views=server_views(stages, trials, {}, {}, tallies),
    )  # fmt: skip
    return [page for module in _OF_TALLIES if (page := module.section(shown)) is not None]


def _looked(name: str, dimensions: tuple[str, ...], other: str | None) -> TallySeries:
    usual = tuple(_USUAL.get(each, f"a {each}") for each in dimensions)
    another = tuple(
        _OTHER.get(each, f"another {each}") if each == other else value
        for each, value in zip(dimensions, usual, strict=True)
    )
    keys = tuple(dict.fromkeys((usual, another)))
    begin, end = (at // 1_000_000_000 for at in _RESULT.window_ns)
    ticks = np.arange(begin, end + 1)
    seconds, key = np.repeat(ticks, 2), np.tile([0, len(keys) - 1], ticks.size)
    counts = np.full(seconds.size, 2 * _LOOKS)
    return TallySeries(name, dimensions, keys, seconds, key, counts, ticks,
                       np.full(ticks.size, _LOOKS))  # fmt: skip
