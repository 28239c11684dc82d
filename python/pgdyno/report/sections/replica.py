"""A replica that answered reads: how much, and how far behind its primary it was."""

from __future__ import annotations

import math
from collections.abc import Callable

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.replica_facts import Levels, ReplicaRow
from pgdyno.model.units import bytes_text, count_text, share_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Cell, Column, Points, Section, Table, Text


def section(facts: Facts) -> Section | None:
    """By stage; None: the server itself answered everything."""
    if not facts.replica:
        return None
    return Section("replica", "Reads of a replica", (
        Points(("Reads may be stale: Order-Status and Stock-Level saw what the replica had replayed"
                " by then, not what the server had committed.",), "warn"),
        Text("The terminals and what they ask for are the same; sessions of their own carry these"
             " two kinds. Conditions of consistency are checked on the server. The lag is told by"
             " one clock, to a quarter of a second: how long ago the server was where the replica"
             " is. ≥ marks the least that it can have been, as nobody looked at the server then."),
        Table(
            "What the replica answered, and how far behind it was: all samples of the windows,"
            " rounds merged.",
            (Column("stage", align="left"), Column("connections"), Column("answered", "1/s"),
             Column("of all"), Column("lag p50", "s"), Column("lag p99", "s"),
             Column("lag most", "s"), Column("behind p50"), Column("behind p99"),
             Column("behind most"), Column("samples", align="left")),
            tuple(_row(row) for row in facts.replica),
        ),
    ))  # fmt: skip


def _row(row: ReplicaRow) -> tuple[Cell, ...]:
    return (
        Cell(row.stage),
        Cell(str(row.connections)),
        Cell(count_text(row.answered_per_s)),
        Cell(share_text(row.share)),
        *_levels(row.lag_s, lambda seconds: f"{seconds:.2f}"),
        *_levels(row.behind_bytes, bytes_text),
        Cell(f"{row.samples} in {plural(row.rounds, 'round')}"),
    )


def _levels(levels: Levels | None, text: Callable[[float], str]) -> tuple[Cell, ...]:
    if levels is None:
        return tuple(Cell(words.NOTHING) for _ in range(3))
    least = math.inf if levels.exact_below is None else levels.exact_below
    return tuple(
        Cell(text(value) if value < least else f"≥ {text(value)}")
        for value in (levels.p50, levels.p99, levels.most)
    )
