"""What the windows were divided into: steps and databases; and when connections were lost."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.model.units import at_least_text, count_text, seconds_text
from pgdyno.model.wording import capital, listed
from pgdyno.report.document import Block, Cell, Column, Section, Table, columns

TIMES = ("p50", "p95", "p99", "max")


def section(facts: Facts) -> Section | None:
    """A table of each; nothing where there is none."""
    blocks: list[Block] = [*_steps(facts), *_parts(facts), *_outages(facts)]
    if not blocks:
        return None
    named = (("steps", facts.steps), ("databases", facts.parts), ("outages", facts.outages))
    title = listed([name for name, found in named if found])
    return Section("shape", capital(title), tuple(blocks))


def _steps(facts: Facts) -> tuple[Table, ...]:
    if not facts.steps:
        return ()
    kind = words.kind(facts.main_kind)
    caption = (
        "Steps of the windows: how many transactions of all kinds came to their end, and response"
        f" times of {kind} by the step in which it became due; rounds merged."
    )
    rows = tuple(
        (
            Cell(f"{one.stage}, step {one.number}"),
            Cell(seconds_text(one.seconds)),
            Cell(_factor(one.factor)),
            Cell(words.count(one.ended_per_s)),
            *_times(one.percentiles_ns, one.exact_below_ns),
            Cell(count_text(one.failed)),
            Cell(count_text(one.skipped)),
        )
        for one in facts.steps
    )
    heads = ("length", "factor", "transactions a second", *TIMES, "failed", "skipped")
    return (Table(caption, columns("stage, step", *heads), rows),)


def _factor(factor: tuple[float, float]) -> str:
    begin, end = factor
    return f"{begin:g}" if begin == end else f"{begin:g} to {end:g}"


def _parts(facts: Facts) -> tuple[Table, ...]:
    if not facts.parts:
        return ()
    caption = (
        f"Databases driven at once, each by terminals of its own: {facts.headline}, and response"
        f" times of {words.kind(facts.main_kind)}, rounds merged."
    )
    rows = tuple(
        (
            Cell(f"{one.stage}, {one.name}"),
            Cell(words.count(one.throughput)),
            *_times(one.percentiles_ns, one.exact_below_ns),
        )
        for one in facts.parts
    )
    return (Table(caption, columns("stage, database", facts.headline, *TIMES), rows),)


def _times(percentiles_ns: tuple[int, ...] | None, exact_below_ns: int | None) -> tuple[Cell, ...]:
    if percentiles_ns is None:
        return tuple(Cell(words.NOTHING) for _ in TIMES)
    return tuple(Cell(at_least_text(ns, exact_below_ns)) for ns in percentiles_ns)


def _outages(facts: Facts) -> tuple[Table, ...]:
    if not facts.outages:
        return ()
    rows = tuple(
        (
            Cell(f"{one.trial}: {one.stage}, round {one.round}"),
            Cell(f"{one.start_s:.2f}"),
            Cell("until the end" if one.seconds is None else seconds_text(one.seconds), "warn"),
            Cell(count_text(one.connections)),
        )
        for one in facts.outages
    )
    heads = (
        Column("trial", align="left"),
        Column("began", "s since the window began"),
        Column("lasted"),
        Column("connections lost"),
    )
    return (Table("Times during which connections were gone.", heads, rows),)
