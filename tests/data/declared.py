"""What samplers declare, and which of it no part of a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.sampled import sampled
from pgdyno.analysis.telemetry_facts import TelemetryFacts
from pgdyno.model.run import (
    Series,
    SnapshotColumn,
    SnapshotRows,
    TallySeries,
    TrialRecord,
    TrialState,
)
from pgdyno.report.document import Section, Table
from pgdyno.report.sections import sections
from pgdyno.report.sections.sampled import SHOWN_IN
from pgdyno.sample.sampler import Column, Missing, Sampler, Snapshot, Tally
from tests.data.miniature import a_result

NOT_BY_ROWS = {"resets", "statement counts"}
"""Tallies and snapshots whose values stand in the run file, or in other figures, as the page says.
One that is new has to be shown by a section, and to stand in `SHOWN_IN`, or to be put here."""


def not_shown(found: Iterable[Sampler | Tally | Snapshot | Missing], facts: Facts) -> set[str]:
    """Series that no section names with their values, tallies and tables that none has a place for.

    Args:
        found: Samplers.
        facts: Of any run, whose own telemetry does not matter.
    """
    declared = [one for one in found if not isinstance(one, Missing)]
    columns = [c for one in declared if isinstance(one, Sampler) for c in one.columns]
    result, series = a_result(), [_series(column) for column in columns]
    result = replace(result, deltas={one.name: 3.0 for one in columns if one.kind == "counter"})
    record = TrialRecord(1, 1, facts.stages[0].name, "x", TrialState.FINISHED, result=result)
    everything = sampled(
        [stage.name for stage in facts.stages], [record], {1: {one.name: one for one in series}},
        {1: {one.name: _met(one) for one in declared if isinstance(one, Tally)}},
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
    begin, end = a_result().window_ns
    times = np.array([begin, (begin + end) // 2, end])
    return Series(column.name, column.unit, column.kind, times, np.array([1.0, 2.0, 3.0]))


def _met(one: Tally) -> TallySeries:
    some = np.array([1], dtype=np.int64)
    return TallySeries(one.name, one.dimensions, (("a",) * len(one.dimensions),), some, some - 1,
                       some, some, some)  # fmt: skip


def _read(one: Snapshot) -> SnapshotRows:
    columns = tuple(SnapshotColumn(column.name, "", "label") for column in one.columns)
    row = dict.fromkeys((column.name for column in columns), "a")
    return SnapshotRows(one.name, "end", 0, columns, (dict(row),))
