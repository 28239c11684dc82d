"""All that was sampled, so that nothing stands in the run file alone because nobody asked for it.

Folded: a reader who looks for a name finds it with the browser's own search.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.telemetry_facts import (
    Sampled,
    SampledGroup,
    SampledLevel,
    SampledSeries,
    SampledTable,
)
from pgdyno.analysis.words import NOTHING
from pgdyno.model.units import bytes_text, count_text, digits_text, ns_text
from pgdyno.model.wording import capital, plural
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text

_ABOUT = (
    "Every series of the windows, by what it tells of: what a counter grew by a second, and the"
    " mean of any other, as the median of a stage's trials; below a mean stands the greatest value"
    " of all of them where it is another one. Other sections choose of these what tells most."
)
_TABLES = (
    "What was looked at moment by moment (tallies: keys that were met), and what was read at the"
    " ends of the windows (snapshots: rows at the end); the most of a trial."
)
SHOWN_IN = {
    "sessions": "What sessions did",
    "locks": "What sessions did",
    "statements": "Statements, tables and plans",
    "tables": "Statements, tables and plans",
    "plans": "Statements, tables and plans",
    "cgroup_limits": "Resources",
    "aio": "What the server's views say",
    "progress": "What the server's views say",
    "buffers": "What the server's views say",
    "indexes": "What the server's views say",
    "pg_stat_io": "What the server's views say",
    "slots": "What the server's views say",
    "standbys": "What the server's views say",
    "log": "Over time",
}
"""The section that shows a tally or snapshot; the values of any other are in the run file."""
_IN_THE_FILE = "the run file"
_BY_SECOND = {"1": "1/s", "B": "B/s", "s": "s/s"}


def section(facts: Facts) -> Section | None:
    """Nothing where no trial tells."""
    found = facts.telemetry.sampled if facts.telemetry else Sampled()
    if not found.groups and not found.tables:
        return None
    names = [stage.name for stage in facts.stages]
    return Section("sampled", "All that was sampled", (Text(_ABOUT), *_blocks(found, names)))


def _blocks(found: Sampled, stages: list[str]) -> Iterator[Block]:
    for group in found.groups:
        if group.series:
            yield _series(group, stages)
    for what, caption in (
        ("zero", "Series that were zero in every window."),
        ("unknown", "Series of whose windows nothing is known: no sample lies in them, or the"
                    " counter began anew."),
    ):  # fmt: skip
        rows = tuple(
            (Cell(capital(group.title)), Cell(", ".join(names)))
            for group in found.groups
            if (names := getattr(group, what))
        )
        if rows:
            heads = (Column("of", align="left"), Column("series", align="left"))
            yield Table(caption, heads, rows, folded=True)
    if found.tables:
        yield _tables(found.tables, stages)


def _series(group: SampledGroup, stages: list[str]) -> Table:
    count = plural(len(group.series) + group.left_out, "series", "series", thousands=True)
    more = f" {len(group.series):,} of them are shown." if group.left_out else ""
    heads = (
        Column("series", align="left"), Column("unit", align="left"), *(map(Column, stages)),
    )  # fmt: skip
    rows = tuple(
        (Cell(one.name), Cell(_unit(one)), *(_cell(one, level) for level in one.stages))
        for one in group.series
    )
    return Table(f"{capital(group.title)}: {count}.{more}", heads, rows, folded=True)


def _unit(one: SampledSeries) -> str:
    return _BY_SECOND.get(one.unit, f"{one.unit}/s") if one.kind == "counter" else one.unit


def _cell(one: SampledSeries, level: SampledLevel | None) -> Cell:
    if level is None:
        return Cell(NOTHING, "quiet")
    mean, greatest = _text(one, level.mean), level.greatest
    most = None if greatest is None else _text(one, greatest)
    return Cell(mean, note=f"most {most}" if most and most != mean else None)


def _text(one: SampledSeries, value: float) -> str:
    match one.unit:
        case "B":
            return bytes_text(value)
        case "s" if one.kind != "counter":
            return ns_text(value * 1e9)
        case _:
            return count_text(value) if abs(value) >= 1000 else digits_text(value)


def _tables(tables: tuple[SampledTable, ...], stages: list[str]) -> Table:
    heads = (
        Column("name", align="left"), Column("columns", align="left"),
        Column("values stand in", align="left"), *(map(Column, stages)),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(one.name, note=one.kind),
            Cell(", ".join(one.columns)),
            Cell(SHOWN_IN.get(one.name, _IN_THE_FILE)),
            *(Cell(NOTHING if count is None else f"{count:,}") for count in one.stages),
        )
        for one in tables
    )
    return Table(_TABLES, heads, rows, folded=True)
